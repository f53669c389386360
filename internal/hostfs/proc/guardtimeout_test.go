package proc

import (
	"errors"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// A process whose read blocks uses up the sweep's timeout once, is not read
// again while that read is pending, and is read again after it.
func TestGuardGivesUp(t *testing.T) {
	g := NewGuard(time.Millisecond)
	g.resetTimeout()
	hung, other := model.ProcessID{PID: 1, StartTicks: 1}, model.ProcessID{PID: 2, StartTicks: 1}
	release := make(chan struct{})
	if _, err := g.Run(hung, func() { <-release }); !errors.Is(err, hostfs.ErrTimeout) {
		t.Fatalf("error %v", err)
	}
	asked := false
	if _, err := g.Run(hung, func() { asked = true }); !errors.Is(err, hostfs.ErrTimeout) || asked {
		t.Errorf("error %v, asked again %v", err, asked)
	}
	g.resetTimeout()
	if _, ok := g.stuck[hung]; !ok {
		t.Error("forgotten while it hangs")
	}
	g.timeout = time.Minute
	g.resetTimeout()
	if _, err := g.Run(other, func() { asked = true }); err != nil || !asked {
		t.Errorf("another one: %v", err)
	}
	done := g.stuck[hung]
	close(release)
	<-done.done
	g.resetTimeout()
	if _, err := g.Run(hung, func() {}); err != nil {
		t.Errorf("after it answered: %v", err)
	}
}

// All reads of one sweep share the timeout.
func TestGuardSharesTimeout(t *testing.T) {
	g := NewGuard(20 * time.Millisecond)
	g.resetTimeout()
	release := make(chan struct{})
	defer func() {
		close(release)
		for _, done := range g.stuck {
			<-done.done
		}
	}()
	for pid := range maxStuck { // more of an ordinary user's would not be read
		_, _ = g.Run(model.ProcessID{PID: pid, StartTicks: 1}, func() { <-release })
	}
	if g.left > 0 || len(g.stuck) != maxStuck {
		t.Errorf("%v left after %d of %d hung", g.left, len(g.stuck), maxStuck)
	}
}
