// Package kinds joins workloads with what they can do besides holding device
// nodes: programs pass All to sim.Reexec.
package kinds

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/sim/metal"
	"github.com/ttmon/ttmon/internal/sim/workload"
)

// All are the kinds there are.
func All() workload.Kinds {
	return workload.Kinds{"metal": account, "report": report, "ledger": keepLedger}
}

// Usage is the settings of the kinds, for help texts.
const Usage = metalUsage + "\n" + reportUsage + "\n" + ledgerUsage

const metalUsage = `kind=metal         account for device memory in /dev/shm, as tt-metal does
  layout=3           layout of the statistics regions, 2 to 4 (3)
  dram=8G            bytes held on each chip; also l1=, l1_small=, trace=, cb=
  moves              allocate and free a tenth more, again and again
  script=COMMANDS    commands of "ttmon-sim metal", separated by ";"; @0 is the
                     chip of device 0, @0R the second chip of an n300`

// pools are the settings that are amounts, in the order they are allocated.
var pools = []string{"dram", "l1", "l1_small", "trace"}

// account plays a tt-metal program on the workload's devices.
func account(ctx context.Context, s workload.Spec, link workload.Link) error {
	chips, err := chipsOf(s)
	if err != nil {
		return err
	}
	script, err := scriptOf(s, chips)
	if err != nil {
		return err
	}
	layout := uint32(3)
	if text, ok := s.Params["layout"]; ok {
		if _, err := fmt.Sscan(text, &layout); err != nil {
			return fmt.Errorf("layout %q: %w", text, err)
		}
	}
	w, err := metal.New(s.Root+"/dev/shm", layout)
	if err != nil {
		return err
	}
	defer w.CloseAll()
	for _, line := range script {
		if err := step(ctx, w, line, link.Ready); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	link.Ready()
	if _, ok := s.Params["moves"]; ok {
		return move(ctx, w, chips)
	}
	<-ctx.Done()
	return nil
}

// step carries out one command. Who started the workload waits until it first
// sleeps, ends, or has done everything.
func step(ctx context.Context, w *metal.Workload, line string, ready func()) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case "sleep", "die", "exit", "quit", "exec":
		ready()
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

// scriptOf turns the settings into commands.
func scriptOf(s workload.Spec, chips []chipRef) ([]string, error) {
	var lines []string
	for _, c := range chips {
		lines = append(lines, fmt.Sprintf("open %d %d", c.id, c.logical))
		for _, pool := range pools {
			if size := s.Params[pool]; size != "" {
				lines = append(lines, fmt.Sprintf("alloc %d %s %s", c.id, pool, size))
			}
		}
		if size := s.Params["cb"]; size != "" {
			lines = append(lines, fmt.Sprintf("cb %d %s", c.id, size))
		}
	}
	if text, ok := s.Params["script"]; ok {
		if len(lines) > len(chips) {
			return nil, fmt.Errorf("give either amounts or a script")
		}
		lines = lines[:0]
		for line := range strings.SplitSeq(text, ";") {
			lines = append(lines, substitute(line, chips))
		}
	}
	known := append([]string{"layout", "moves", "script", "cb"}, pools...)
	for _, key := range slices.Sorted(maps.Keys(s.Params)) {
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("no setting %q of kind metal; there are:\n%s", key, Usage)
		}
	}
	return lines, nil
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
