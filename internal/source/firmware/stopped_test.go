package firmware_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/lab/sim/arc/emulated"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/chipread"
	"github.com/ttmon/ttmon/internal/source/firmware"
)

// The bus ids of chips whose readers do not answer.
const (
	stops  = "0000:01:00.0" // its reader is stopped
	panics = "0000:0f:00.0"
)

// readerThatStops is a reader process: it reads emulated chips, or is stopped in
// the middle of one.
func readerThatStops() int {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	var requests []chipread.Request
	if err := json.Unmarshal(text, &requests); err != nil {
		return 1
	}
	for _, r := range requests {
		os.Stdout.WriteString("hc")
		switch r.BusID {
		case stops:
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		case panics:
			panic("word 7 of 6")
		}
		d := emulated.New(r.Arch, arc.New(r.Arch, arc.Fixed(arc.Sample(r.Arch))))
		d.BusID = r.BusID
		answer, err := json.Marshal(chipread.Read(d, &r))
		if err != nil {
			return 1
		}
		os.Stdout.Write(append(answer, '\n'))
	}
	return 0
}

// follower is a reader process of which the test knows when it is stopped: only
// then its time runs, whatever the load of the machine.
type follower struct {
	firmware.Reader
	left []chipread.Request
}

// awaitStopped waits until a process is stopped.
func awaitStopped(pid int) {
	for stat := ""; !strings.Contains(stat, ") T "); time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		stat = string(b)
	}
}

func (f *follower) Next(time.Time) (string, chipread.Response, error) {
	r := f.left[0]
	f.left = f.left[1:]
	until := time.Now().Add(time.Hour)
	if r.BusID == stops {
		awaitStopped(f.PID())
		until = time.Now().Add(time.Second)
	}
	return f.Reader.Next(until)
}

// emulatedReader reads emulated chips in this process.
type emulatedReader struct{ left []chipread.Request }

func (e *emulatedReader) PID() int { return 1<<22 + 1 } // above what the kernel gives out
func (e *emulatedReader) Kill()    {}
func (e *emulatedReader) Wait()    {}

func (e *emulatedReader) Next(time.Time) (string, chipread.Response, error) {
	r := e.left[0]
	e.left = e.left[1:]
	d := emulated.New(r.Arch, arc.New(r.Arch, arc.Fixed(arc.Sample(r.Arch))))
	d.BusID = r.BusID
	return "hc", chipread.Read(d, &r), nil
}

// A reader process that is stopped costs one row of one chip and nothing else, for
// an hour: the other chip is read, no second reader is started, and the stopped
// one does not count as a user.
func TestStoppedProcess(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	var seen []firmware.Seen
	var last firmware.Reader // that stops
	for i, bus := range []string{stops, "0000:02:00.0"} {
		seen = append(seen, firmware.Seen{Device: &model.Device{
			Index: i, BusID: bus, Arch: model.Wormhole, State: model.StateOK, Heartbeat: model.Reading[uint32]{},
		}})
	}
	s := firmware.New(firmware.Options{
		Root: hostfs.At(t.TempDir()), Mode: firmware.Table, Superuser: true,
		Start: func(r []chipread.Request) (firmware.Reader, error) {
			if r[0].BusID != stops {
				return &emulatedReader{r}, nil // an hour of processes would be 720
			}
			p, err := firmware.StartSelf(r)
			last = p
			return &follower{p, r}, err
		},
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now },
	})
	pass := func(d time.Duration) {
		for ; d > 0; d -= 5 * time.Second {
			mu.Lock()
			now = now.Add(5 * time.Second)
			mu.Unlock()
			s.Sample("2.10.0", seen)
			s.Settle()
		}
	}
	state := func(i int) *model.Telemetry {
		d := *seen[i].Device
		s.Fill(&d)
		return &d.Telemetry
	}
	pass(10 * time.Second) // the second chip was behind the first one: another process reads it
	if a, b := state(0), state(1); a.State != model.TelemetryStalled || b.State != model.TelemetryOK || !b.BoardPower.Known() {
		t.Fatalf("states %q (%s), %q (%s)", a.State, a.Cause, b.State, b.Cause)
	}
	s.Idle() // a stopped process can be killed; a load that does not return cannot
	if pid := last.PID(); !s.Own(pid) {
		t.Errorf("the killed reader %d, which the driver may still list, is a user", pid)
	}
	if s.Own(os.Getpid()) {
		t.Error("the test is a reader")
	}
	started := s.Started()
	pass(time.Hour)
	if a, b := state(0), state(1); a.State != model.TelemetryStalled || b.State != model.TelemetryOK {
		t.Errorf("states %q (%s), %q (%s)", a.State, a.Cause, b.State, b.Cause)
	}
	if n := s.Started() - started; n != 720 {
		t.Errorf("%d readers in an hour of 5 s, want 720: those of the other chip", n)
	}
	if p := state(0).BoardPower; p.Known() || p.Status != model.Hung || !strings.Contains(p.Why, "not read") {
		t.Errorf("board power %+v", p)
	}
	s.Close()
}

// stalledReader never answers, and takes a moment to be killed.
type stalledReader struct{ killed chan struct{} }

func (r *stalledReader) PID() int { return 1<<22 + 2 }
func (r *stalledReader) Wait()    { <-r.killed }

func (r *stalledReader) Kill() {
	time.Sleep(20 * time.Millisecond) // it takes its time: callers must not wait for it
	close(r.killed)
}

func (r *stalledReader) Next(time.Time) (string, chipread.Response, error) {
	return "hc", chipread.Response{}, firmware.ErrLate
}

// When Close has returned every reader that does not answer is killed: it would keep
// its device node open after ttmond has ended.
func TestCloseKillsStalledReaders(t *testing.T) {
	reader := &stalledReader{make(chan struct{})}
	s := firmware.New(firmware.Options{
		Root: hostfs.At(t.TempDir()), Mode: firmware.Table, Superuser: true,
		Start: func([]chipread.Request) (firmware.Reader, error) { return reader, nil },
	})
	s.Sample("2.10.0", []firmware.Seen{{Device: &model.Device{BusID: stops, Arch: model.Wormhole, State: model.StateOK}}})
	if s.Started() != 1 {
		t.Fatalf("%d readers", s.Started())
	}
	s.Close()
	select {
	case <-reader.killed:
	default:
		t.Error("a reader that does not answer is left")
	}
}

// A reader that no signal ends must not keep our own output open.
func TestReaderHasItsOwnOutput(t *testing.T) {
	r, err := firmware.StartSelf([]chipread.Request{{BusID: stops, Arch: model.Wormhole}})
	if err != nil {
		t.Fatal(err)
	}
	awaitStopped(r.PID())
	for fd := range 3 {
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", r.PID(), fd))
		if ours, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil || theirs == ours {
			t.Errorf("descriptor %d is %s, as ours: %v", fd, theirs, err)
		}
	}
	r.Kill()
	r.Wait()
}

// What a reader says when it fails is in its error.
func TestReaderPanics(t *testing.T) {
	r, err := firmware.StartSelf([]chipread.Request{{BusID: panics, Arch: model.Wormhole}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Next(time.Now().Add(time.Minute)); err == nil || !strings.Contains(err.Error(), "word 7 of 6") {
		t.Errorf("%v", err)
	}
	r.Wait()
}
