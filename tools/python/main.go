// Python unpacks a CPython 3.12 into a directory, for machines that have
// neither 3.12 nor 3.10, the ones that ttnn has packages for. It is a module
// of its own: nothing else needs what it brings along.
//
//	cd tools/python && go run . DIR
package main

import (
	"fmt"
	"os"

	"github.com/kluctl/go-embed-python/python"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: python DIR")
		os.Exit(2)
	}
	if err := unpack(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "python:", err)
		os.Exit(1)
	}
}

// unpack makes the directory whole or not at all.
func unpack(dir string) error {
	unfinished := dir + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if _, err := python.NewEmbeddedPythonWithTmpDir(unfinished, false); err != nil {
		return fmt.Errorf("unpacking CPython: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(unfinished, dir)
}
