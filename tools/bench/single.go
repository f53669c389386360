package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// singleCommit is the last commit in which ttmond did what ttmon-server does now.
const singleCommit = "f5cc2f8"

// benchSingle measures both halves next to the single daemon that they replaced: all
// three at the same time, on the same files, so that the rest of the machine hits
// them alike. What their readers of devices take counts.
func benchSingle(l *lab) error {
	single, err := buildAt(singleCommit, "ttmond")
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "boards\tprocesses\tone daemon %\tMB\tttmond %\tMB\tttmon-server %\tMB\tboth to one\t")
	for _, c := range []struct {
		boards    string
		processes int
	}{{"1xp150a", 0}, {"8xp150a", 0}, {"32xp150a", 0}, {"32xp150a", 64}} {
		f, err := l.beside(single, c.boards, c.processes)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.1f\t%.2f\t%.1f\t%.2f\t%.1f\t%.2f\t\n", strings.TrimSuffix(c.boards, "xp150a"), c.processes,
			f[0].share, f[0].resident, f[1].share, f[1].resident, f[2].share, f[2].resident, (f[1].share+f[2].share)/f[0].share)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("one daemon: ttmond of %s, with history, alerts and /metrics. CPU in percent of a core, with what the readers of devices take. Aim: both to one 1.\n", singleCommit)
	return nil
}

// beside measures the single daemon, ttmond, and the ttmon-server that follows it.
func (l *lab) beside(single, boards string, processes int) ([]taken, error) {
	dir, err := os.MkdirTemp("", "ttmon-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "root")
	script := fmt.Sprintf(`%[3]s --root %[4]s --socket %[1]s/one.sock --alloc-socket %[1]s/one.alloc --state-dir %[1]s/one --listen off 2>/dev/null & a=$!
%[2]s/ttmond --root %[4]s --socket %[1]s/ttmond.sock --alloc-socket %[1]s/alloc --state-dir %[1]s/ttmond 2>/dev/null & b=$!
%[2]s/ttmon-server --daemon %[1]s/ttmond.sock --socket %[1]s/server.sock --state-dir %[1]s/state --listen off 2>/dev/null & c=$!
`, dir, l.bin, single, root)
	pids, stop, err := l.startDaemons(dir, append(hostOf(boards, processes), "--root", root), script, "$a", "$b", "$c")
	if err != nil {
		return nil, err
	}
	defer stop()
	return settled(pids...)
}
