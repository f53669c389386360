package workload

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"
)

// kind is what a workload does besides holding device nodes. Its fields are
// its settings.
type kind interface {
	// check finds what is wrong with the settings together.
	check() error
	// run does it until ctx ends, in a process of its own, after the nodes
	// were opened.
	run(ctx context.Context, s Spec, chips []chipRef, link link) error
}

// link is how a kind speaks with the Manager that started it.
type link struct {
	// answer says the line that the starter waits for: ready, when the kind has
	// done what was asked for, or what went wrong before. The first line counts.
	answer func(line string)
	// load changes the load that the workload puts on its devices.
	load func(float64)
	// orders are the lines that Manager.Order sends.
	orders <-chan string
}

// kinds are the kinds there are, in the order in which help shows them.
var kinds = []struct {
	name, help string
	make       func() kind
}{
	{"metal", "account for device memory in /dev/shm, as tt-metal does", newAccountant},
	{"report", "report allocations on the old socket, as instrumented programs do", newReporter},
	{"ledger", "keep a ledger, as programs with libttmon in them do: every block is seen", newLedger},
}

// makeKind is a kind with its settings.
func makeKind(name string, p Params) (kind, error) {
	for _, row := range kinds {
		if row.name == name {
			k := row.make()
			if err := applyAll(name, k, p); err != nil {
				return nil, err
			}
			return k, k.check()
		}
	}
	return nil, fmt.Errorf("no kind of workload %q", name)
}

// library is a setting of several kinds.
type library struct {
	Lib string `set:"lib=PATH" help:"map PATH, as a program does that tt-metal's library is linked to"`
}

// mapIt maps the library, if there is one; the function it returns ends that.
func (l library) mapIt() (unmap func(), err error) {
	if l.Lib == "" {
		return func() {}, nil
	}
	mem, err := metal.MapLibrary(l.Lib)
	return func() { _ = unix.Munmap(mem) }, err
}
