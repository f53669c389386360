package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// moving is a host whose time moves on by a second with each look.
type moving struct{ at time.Time }

func (m *moving) Next(context.Context) (*model.Snapshot, error) {
	s := sample.One()
	m.at = m.at.Add(time.Second)
	s.Time = m.at
	return s, nil
}

// silent is a host that cannot be asked.
type silent struct{}

func (silent) Next(context.Context) (*model.Snapshot, error) { return nil, errors.New("it is away") }

// until ticks until something is so.
func until(t *testing.T, s *Session, is func() bool) {
	t.Helper()
	for !is() {
		if err := s.Tick(time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestSession(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.ttrec")
	s, err := New(Options{File: file, Interval: time.Millisecond, Command: []string{"python"}, Host: host.Options{Instead: &moving{time.Now()}}})
	if err != nil {
		t.Fatal(err)
	}
	until(t, s, func() bool { return s.snapshots >= 3 })
	s.Started(42)
	s.Exited(5)
	if err := s.End(nil); err != nil {
		t.Fatal(err)
	}
	if text := string(s.AppendSummary(nil)); !strings.Contains(text, fmt.Sprintf("%d snapshots, 0 allocations", s.snapshots)) || strings.Contains(text, "missed") {
		t.Error(text)
	}
	r, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var last recording.Meta
	for c := r.Begin(); ; {
		x, err := c.Next()
		if err != nil {
			break
		}
		if x.Kind == recording.KindMeta {
			last = *x.Meta
		}
	}
	if last.PID != 42 || last.ExitCode == nil || *last.ExitCode != 5 || last.Command[0] != "python" {
		t.Errorf("%+v", last)
	}
}

// slow is a host that answers late, unless no caller waits for it.
type slow struct{ moving }

func (s *slow) Next(ctx context.Context) (*model.Snapshot, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(20 * time.Millisecond):
		return s.moving.Next(ctx)
	}
}

// A program that ends before the host has answered once leaves a recording
// with a snapshot.
func TestShort(t *testing.T) {
	s, err := New(Options{File: filepath.Join(t.TempDir(), "x.ttrec"), Interval: time.Second, Host: host.Options{Instead: &slow{moving{time.Now()}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.End(nil); err != nil {
		t.Fatal(err)
	}
	if s.snapshots != 1 {
		t.Errorf("%d snapshots, want 1: %v", s.snapshots, s.last)
	}
}

// A recording is never replaced unasked.
func TestNew(t *testing.T) {
	o := Options{File: filepath.Join(t.TempDir(), "x.ttrec"), Interval: time.Second, Host: host.Options{Instead: silent{}}}
	if err := os.WriteFile(o.File, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(o)
	if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != exit.BadArgument || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(o.File); err != nil || string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
	o.Replace = true
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	until(t, s, func() bool { return s.looked })
	if err := s.End(nil); err != nil {
		t.Error(err)
	}
	if text := string(s.AppendSummary(nil)); !strings.Contains(text, "no snapshot could be taken: it is away") {
		t.Error(text)
	}
}

// What a program prints is passed on as it is, and recorded line by line.
func TestCapture(t *testing.T) {
	s, err := New(Options{File: filepath.Join(t.TempDir(), "x.ttrec"), Interval: time.Second, Host: host.Options{Instead: silent{}}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	w, passed, err := s.Capture(2, &out)
	if err != nil {
		t.Fatal(err)
	}
	const text = "one\ntwo\nwithout an end"
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	<-passed
	var lines []string
	for len(s.lines) > 0 {
		l := <-s.lines
		lines = append(lines, fmt.Sprint(l.Stream, l.Text))
	}
	if out.String() != text || strings.Join(lines, "|") != "2one|2two|2without an end" {
		t.Errorf("%q, %q", out.String(), lines)
	}
	if err := s.End(nil); err != nil {
		t.Error(err)
	}
}
