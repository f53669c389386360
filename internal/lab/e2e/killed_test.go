package e2e

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// ttmond is killed under load, again and again: it always starts, no event
// that was answered is lost, and of the history the last seconds at most. How
// many exactly, the log says.
func TestKilledAgainAndAgain(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	programs.Depend(t)
	r, err := killLoop(t.Context(), killOptions{Bin: bin, Boards: "4xp150a", Processes: 8, Interval: 250 * time.Millisecond, Rounds: 6})
	if no, ok := errors.AsType[*sim.NoPrivilegeError](err); ok {
		t.Skipf("a simulated host needs %s, which is missing here", no.Missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("lost %v; before the kill %v; open again after %v; %d events", r.Lost, r.Unseen, r.Opened, r.Events)
	if len(r.Missing) > 0 {
		t.Errorf("of %d events that were answered these are lost: %q", r.Events, r.Missing)
	}
	if r.Events < 3*len(r.Lost) {
		t.Errorf("only %d events were answered: nothing was tried", r.Events)
	}
	// The machine may be busy: what is written a moment later than shown is
	// not what is looked for here, but what is not written at all for long.
	if worst := slices.Max(r.Lost); worst > 10*time.Second {
		t.Errorf("%v of history are lost", worst)
	}
}
