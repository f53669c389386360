package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// baseCommit is ttmond before it was made for hosts with hostile users.
const baseCommit = "7ea109c"

// buildBase builds the ttmond of baseCommit, once, into the cache.
func buildBase() (string, error) { return buildAt(baseCommit, "ttmond") }

// benchAttacks has the tests of ttmond measure what each attack does, next to
// what it did before.
func benchAttacks(*lab) error {
	base, err := buildBase()
	if err != nil {
		fmt.Println("no figures from before:", err)
	}
	return benchAttackFigures(base)
}

// benchAttackFigures has the tests measure each attack. base is an older ttmond;
// "" for none.
func benchAttackFigures(base string) error {
	for _, program := range []string{"./cmd/ttmond", "./cmd/ttmon-server"} {
		if err := attackFigures(program, base); err != nil {
			return err
		}
	}
	fmt.Println("Two users attack for 3 s; ttmond has 512 MiB and 4096 descriptors. Times are of the wall: a busy machine adds its own.")
	fmt.Println("Aim: no stall and no answer above 100 ms, a step of about 1 ms.")
	fmt.Println("The third audit's: 1-3 queries; 4, 7 libraries; 5, 6 ledgers; 8 blocks; 9 half-open; 10 jobs; 11 descriptors; 12 fifos; 13 mappings; 14 takeovers.")
	return nil
}

// attackFigures has the tests of one program measure.
func attackFigures(program, base string) error {
	cmd := exec.Command("go", "test", program, "-run", "TestAttackFigures", "-count=1", "-v", "-timeout", "0")
	cmd.Env = append(os.Environ(), "TTMOND_FIGURES=1", "TTMOND_BASE="+base)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	var rest []string // what else it says, for when it fails
	for in := bufio.NewScanner(out); in.Scan(); {
		if line, ok := strings.CutPrefix(in.Text(), "FIGURE "); ok {
			fmt.Println(line)
		} else {
			rest = append(rest, in.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("a promise was broken: %w\n%s", err, strings.Join(rest, "\n"))
	}
	return nil
}

// benchTakeover is how long clients wait while a successor takes over.
func benchTakeover(l *lab) error {
	if err := l.compile("writer", writerSource); err != nil {
		return err
	}
	for _, buffers := range []int{1000, million, 4 * million} {
		n, err := l.ttmond()
		if err != nil {
			return err
		}
		client, err := l.hold(n, buffers)
		if err != nil {
			n.end()
			return err
		}
		busy := exec.Command(filepath.Join(l.dir, "writer"), n.alloc, "100000000", "1", "100000", "0") // reports meanwhile
		err = busy.Start()
		var pauses []float64
		for range 5 {
			if err == nil {
				err = n.takeOver()
			}
			var pause float64
			if err == nil {
				pause, err = n.pause()
			}
			pauses = append(pauses, pause*1e3)
		}
		for _, c := range []*exec.Cmd{busy, client} {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		n.end()
		if err != nil {
			return err
		}
		slices.Sort(pauses)
		fmt.Printf("takeover with %d buffers and 100000 messages/s: clients wait %.1f ms (median of 5), at most %.1f ms. Aim: 100 at a million\n",
			buffers, pauses[len(pauses)/2], pauses[len(pauses)-1])
	}
	return nil
}
