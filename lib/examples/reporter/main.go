// Reporter is allocator.c in Go: a program with an allocator of its own that keeps a
// ledger, as libttmon does. It holds its memory until its standard input ends.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "reporter:", err)
		os.Exit(1)
	}
}

func run() error {
	r, err := ledgerfile.NewReporter("", 1000) // room for so many live blocks
	if err != nil {
		return err
	}
	defer r.Close()
	dram, err := r.List(ledgerfile.Geometry{Chip: 4476187513037, Pool: ledgerfile.DRAM, Banks: 8, Capacity: 1 << 30})
	if err != nil {
		return err
	}
	if err := dram.Allocated(0, 64<<20, "weights"); err != nil {
		return err
	}
	fmt.Println("64 MiB in each of 8 banks")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
