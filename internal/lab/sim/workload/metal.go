package workload

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"
)

// accountant is a tt-metal program on the workload's devices: it accounts for
// memory in /dev/shm.
type accountant struct {
	Layout  int    `set:"layout=3" in:"2 4" help:"layout of the statistics regions, 2 to 4 (3)"`
	DRAM    string `set:"dram=8G" help:"bytes held on each chip; also l1=, l1_small=, trace=, cb="`
	L1      string `set:"l1"`
	L1Small string `set:"l1_small"`
	Trace   string `set:"trace"`
	CB      string `set:"cb"`
	Moves   bool   `set:"moves" help:"allocate and free a tenth more, again and again"`
	Script  string `set:"script=COMMANDS" help:"commands of \"ttmon-sim metal\", separated by \";\"; @0 is the\nchip of device 0, @0R the second chip of an n300"`
}

func newAccountant() kind { return &accountant{Layout: 3} }

// amounts are what is held on each chip, as commands of a script take it.
func (a *accountant) amounts() [metal.NumPools]string {
	return [...]string{metal.DRAM: a.DRAM, metal.L1: a.L1, metal.L1Small: a.L1Small, metal.Trace: a.Trace, metal.CB: a.CB}
}

func (a *accountant) check() error {
	if a.Script != "" && a.amounts() != [metal.NumPools]string{} {
		return fmt.Errorf("give either amounts or a script")
	}
	return nil
}

func (a *accountant) run(ctx context.Context, s Spec, chips []chipRef, link link) error {
	w, err := metal.New(s.Root+"/dev/shm", uint32(a.Layout))
	if err != nil {
		return err
	}
	defer w.CloseAll()
	for _, line := range a.commands(chips) {
		if err := step(ctx, w, line, link); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	link.answer(ready)
	if a.Moves {
		return move(ctx, w, chips)
	}
	<-ctx.Done()
	return nil
}

// step carries out one command. Who started the workload waits until it first
// sleeps, ends, or has done everything.
func step(ctx context.Context, w *metal.Workload, line string, link link) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case "sleep", "die", "exit", "quit", "exec":
		link.answer(ready)
	}
	switch words[0] {
	case "sleep":
		if len(words) == 2 {
			if d, err := time.ParseDuration(words[1]); err == nil {
				select { // the host does not wait for sleepers
				case <-time.After(d):
				case <-ctx.Done():
				}
				return nil
			}
		}
	case "quit":
		w.CloseAll()
		os.Exit(0)
	case "exit":
		os.Exit(0)
	}
	_, err := w.Do(line)
	return err
}

// commands are the settings as a script.
func (a *accountant) commands(chips []chipRef) (lines []string) {
	if a.Script != "" {
		for line := range strings.SplitSeq(a.Script, ";") {
			lines = append(lines, substitute(line, chips))
		}
		return lines
	}
	for _, c := range chips {
		lines = append(lines, fmt.Sprintf("open %d %d", c.id, c.logical))
		for p, size := range a.amounts() {
			switch {
			case size == "":
			case metal.Pool(p) == metal.CB:
				lines = append(lines, fmt.Sprintf("cb %d %s", c.id, size))
			default:
				lines = append(lines, fmt.Sprintf("alloc %d %s %s", c.id, metal.Pool(p), size))
			}
		}
	}
	return lines
}

// substitute replaces the words @0 and @0R by the ids of chips.
func substitute(line string, chips []chipRef) string {
	words := strings.Fields(line)
	for i, word := range words {
		for _, c := range chips {
			if word == "@"+c.name {
				words[i] = fmt.Sprint(c.id)
			}
		}
	}
	return strings.Join(words, " ")
}

// move lets the amounts swing.
func move(ctx context.Context, w *metal.Workload, chips []chipRef) error {
	held := w.Held()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, c := range chips {
			for _, p := range []metal.Pool{metal.DRAM, metal.L1} {
				tenth := held[c.id][p.String()] / 10
				change := w.Alloc
				if n%2 == 1 {
					change = w.Free
				}
				if err := change(c.id, p, tenth, false); err != nil {
					return err
				}
			}
		}
	}
}
