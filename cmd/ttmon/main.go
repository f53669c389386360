// Command ttmon shows Tenstorrent boards: what they are, how they do, and who
// uses their memory. It reads the host directly, as any user and without touching
// a chip.
//
// This package only wires: flags, exit codes, where output goes. What is read
// comes from internal/collect, what is printed from internal/view.
package main

import (
	"os"
)

func main() {
	a := &app{stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	os.Exit(a.run(os.Args))
}
