package e2e

import (
	"bufio"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// stream is a ttmon smi --json in a loop: the same process sees the host
// before, during and after whatever the test does to it.
type stream struct {
	t     *testing.T
	lines chan *model.Snapshot
}

func watch(t *testing.T, h *sim.Host) *stream {
	t.Helper()
	return watchEvery(t, h, "250")
}

// watchEvery is watch with an interval in milliseconds.
func watchEvery(t *testing.T, h *sim.Host, ms string) *stream {
	t.Helper()
	cmd := h.Command(t.Context(), filepath.Join(bin, "ttmon"), "smi", "--json", "--direct", "-lms", ms)
	cmd.Env = environment(t)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &stream{t, make(chan *model.Snapshot)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for in := bufio.NewReader(out); ; {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			snap, err := wire.Decode(line)
			if err != nil {
				t.Errorf("a line of the loop is no snapshot: %v\n%s", err, line)
				return
			}
			select {
			case s.lines <- snap:
			case <-t.Context().Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-done
		cmd.Wait()
	})
	return s
}

// next is the next snapshot of the loop.
func (s *stream) next() *model.Snapshot {
	s.t.Helper()
	select {
	case snap := <-s.lines:
		return snap
	case <-time.After(time.Minute):
		s.t.Fatal("the loop has stopped")
		return nil
	}
}

// until waits for a snapshot in which something holds. The limit is for a
// condition that never comes; how long it takes is not tested.
func (s *stream) until(what string, holds func(*model.Snapshot) bool) *model.Snapshot {
	s.t.Helper()
	var last *model.Snapshot
	for limit := time.Now().Add(5 * time.Minute); time.Now().Before(limit); {
		if last = s.next(); holds(last) {
			return last
		}
	}
	for i := range last.Devices {
		s.t.Logf("device %d: %s %+v", last.Devices[i].Index, last.Devices[i].State, last.Devices[i].StateReason)
	}
	s.t.Fatalf("it never came to this: %s", what)
	return nil
}

// state makes a condition for until.
func state(index int, want model.State) func(*model.Snapshot) bool {
	return func(s *model.Snapshot) bool {
		d := s.Device(index)
		return d != nil && d.State == want
	}
}
