// Command bench prints the measurements that the documentation quotes, each
// next to a floor or a peer measured in the same run: the machines this runs
// on are noisy, ratios are not. It is what `make bench` runs, and takes the
// binaries from bin/.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// section is one group of measurements.
type section struct {
	name, what string
	run        func(*lab) error
}

var sections = []section{
	{"start", "ttmon version next to true, and to ttmon when it had half its size", benchStart},
	{"smi", "ttmon smi --json on 1, 8 and 32 boards", benchSMI},
	{"top", "ttmon top at 1 Hz on 1, 8 and 32 boards", benchTop},
	{"uprobe", "watching allocators through the kernel", benchUprobe},
	{"ttmond", "the allocation server next to a program that only reads", benchTTMOND},
	{"takeover", "how long clients wait while another ttmond takes over", benchTakeover},
	{"single", "ttmond and ttmon-server next to the single daemon that they replaced", benchSingle},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("no section %q; there are: %s", name, strings.Join(sectionNames(), ", "))
		}
	}
	l, err := newLab()
	if err != nil {
		return err
	}
	defer l.close()
	for _, s := range sections {
		if len(names) > 0 && !slices.Contains(names, s.name) {
			continue
		}
		fmt.Printf("== %s: %s\n", s.name, s.what)
		if err := s.run(l); err != nil {
			return fmt.Errorf("section %s: %w", s.name, err)
		}
		fmt.Println()
	}
	return nil
}

func sectionNames() []string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}
