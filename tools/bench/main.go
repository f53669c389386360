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
	{"mem", "the statistics of 32 chips, ten times a second", benchMem},
	{"uprobe", "watching allocators through the kernel", benchUprobe},
	{"failures", "a program whose requests fail again and again, watched by neither, either and both", benchFailures},
	{"work", "seeing every program that runs on a chip, from inside and from outside", benchWork},
	{"lib", "libttmon inside a program, and reading its ledgers", benchLib},
	{"ttmond", "the allocation server next to a program that only reads", benchTTMOND},
	{"takeover", "how long clients wait while another ttmond takes over", benchTakeover},
	{"history", "ttmond and ttmon-server on 1, 8 and 32 boards, and with 64 processes", benchHistory},
	{"single", "ttmond and ttmon-server next to the single daemon that they replaced", benchSingle},
	{"firmware", "reading the tables of 1, 8 and 32 chips, next to not reading them", benchFirmware},
	{"killed", "what is lost when ttmond is killed under load", benchKilled},
	{"record", "recording 32 boards and a busy program, and finding a moment again", benchRecord},
	{"web", "the page: its weight, the browser, 100 viewers, a fleet of 1,000 hosts", benchWeb},
	{"remember", "a day of 32 devices in the history: appending, the disk, a chart", benchRemember},
	{"month", "a month of history and runs on a host with 32 boards and 64 processes", benchMonth},
	{"fleet", "1,000 and 10,000 hosts of 32 chips in a real Prometheus, without and with recorded sums", benchFleet},
	{"attacks", "what other users can do to it", benchAttacks},
	{"before", "the allocation server next to itself before it was made for hosts with users who mean harm", benchBefore},
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
