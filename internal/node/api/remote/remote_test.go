package remote

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{})
	goleak.VerifyTestMain(m)
}

// lines writes snapshots to a file, one a line.
func lines(t *testing.T, n int) string {
	t.Helper()
	var b []byte
	for i := range n {
		b = append(wire.Append(b, tuitest.Host(1, i)), '\n')
	}
	path := filepath.Join(t.TempDir(), "snapshots")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNext(t *testing.T) {
	path := lines(t, 1)
	s := &Source{Command: []string{"sh", "-c", "cat " + path + "; exec sleep 1000"}}
	defer s.Close()
	snap, err := s.Next(t.Context())
	if err != nil || snap.Host.Name != "lab-3" || len(snap.Devices) != 1 {
		t.Fatalf("Next = %v, %v", snap, err)
	}
	// Nothing new: wait, and stop waiting when told to.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if snap, err := s.Next(ctx); err == nil {
		t.Errorf("the same snapshot twice: %v", snap)
	}
}

// A command that ends is an error with its own words, and is started again.
func TestEndAndAgain(t *testing.T) {
	path := lines(t, 1)
	s := &Source{
		Command: []string{"sh", "-c", "echo hello >&2; echo 'ssh: connect to host x: refused' >&2; exit 255"},
		Again:   []string{"sh", "-c", "cat " + path},
	}
	defer s.Close()
	if _, err := s.Next(t.Context()); err == nil || err.Error() != "sh: ssh: connect to host x: refused" {
		t.Fatalf("error %v", err)
	}
	if snap, err := s.Next(t.Context()); err != nil || snap == nil {
		t.Fatalf("Next = %v, %v", snap, err)
	}
	if _, err := s.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "it ended") {
		t.Fatalf("error %v", err)
	}
}

// Only the newest counts: a screen that was busy must not lag behind.
func TestNewestWins(t *testing.T) {
	path := lines(t, 50)
	done := filepath.Join(t.TempDir(), "done")
	s := &Source{Command: []string{"sh", "-c", "cat " + path + "; touch " + done + "; exec sleep 1000"}}
	defer s.Close()
	last := tuitest.Start.Add(49 * time.Second)
	for {
		snap, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if snap.Time.Equal(last) {
			return
		}
	}
}

func TestBadOutput(t *testing.T) {
	for _, cmd := range []string{"echo not json; exec sleep 1000", "printf '{\"schema\":\"other\"}\\n'; exec sleep 1000"} {
		s := &Source{Command: []string{"sh", "-c", cmd}}
		if _, err := s.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "no snapshot") {
			t.Errorf("%s: error %v", cmd, err)
		}
		s.Close()
	}
	s := &Source{Command: []string{"/no/such/program"}}
	if _, err := s.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "starting /no/such/program") {
		t.Errorf("error %v", err)
	}
}
