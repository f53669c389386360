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
	os.Exit(newApp(os.Stdout, os.Stderr, os.Getenv).run(os.Args))
}
