package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/session"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// still is a host that does not change.
type still struct{ *model.Snapshot }

func (s still) Next(context.Context) (*model.Snapshot, error) { return s.Snapshot, nil }

// options run a command of the shell on a host of one board.
func options(t *testing.T, script string) Options {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return Options{Command: []string{"sh", "-c", script}, Stdout: out, Stderr: out, Host: host.Options{Instead: still{sample.One()}}}
}

// The program's exit code and signal are passed on.
func TestRun(t *testing.T) {
	for script, want := range map[string]struct {
		code   int
		signal int
	}{
		"exit 0": {0, 0}, "exit 7": {7, 0}, "kill -TERM $$": {128 + 15, 15},
	} {
		t.Run(script, func(t *testing.T) {
			r, err := Run(options(t, script))
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Report; got.Run.End.ExitCode() != want.code || got.Run.End.Signal != want.signal || got.Method != runreport.Nothing || r.Recording != nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A run says what its chips did, also of a program that has ended between two looks.
func TestRunReportsWork(t *testing.T) {
	o := options(t, "")
	o.Command = []string{os.Args[0]}
	t.Setenv(reporterEnv, "1")
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	own := &r.Report.Run
	if own.End.ExitCode() != 0 || len(own.Devices) != 1 || len(own.Devices[0].Work) != 1 {
		t.Fatalf("%+v", r.Report)
	}
	w := own.Devices[0].WorkOfChips()[0]
	if !w.Known || w.Bound != model.Exact || w.Seconds != 150e-6 || w.Programs != 2 || w.Late != 50e-6 || w.Gap != 50e-6 || len(w.Operations) != 2 || w.Operations[0].Name != "matmul" {
		t.Errorf("%+v", w)
	}
	// Of the time in which it had the chip open, which is a part of its run.
	if w.Ratio < w.Seconds/own.Took().Seconds() || w.Ratio > 1 {
		t.Errorf("busy %v of a part of %v", w.Ratio, own.Took())
	}
}

func TestCannotRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]int{"no-such-program": notFound, file: cannotRun} {
		t.Run(name, func(t *testing.T) {
			o := options(t, "")
			o.Command = []string{name}
			_, err := Run(o)
			if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != code {
				t.Error(err)
			}
		})
	}
}

// What a recorded program prints is passed on and in the recording, and so is how
// it ended.
func TestRecord(t *testing.T) {
	o := options(t, "echo out; echo err >&2; exit 3")
	file := filepath.Join(t.TempDir(), "run.ttrec")
	o.Record = &session.Options{File: file, Interval: 50 * time.Millisecond, Output: true, Host: o.Host}
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Report.Run.End.ExitCode() != 3 || !strings.Contains(string(r.Recording.AppendSummary(nil)), "ttmon replay "+file) {
		t.Errorf("%+v, %s", r.Report.Run.End, r.Recording.AppendSummary(nil))
	}
	if b, err := os.ReadFile(o.Stdout.Name()); err != nil || !strings.Contains(string(b), "out\n") || !strings.Contains(string(b), "err\n") {
		t.Errorf("%q, %v", b, err)
	}
	reader, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	lines, code := map[int]string{}, -1
	for c := reader.Begin(); ; {
		x, err := c.Next()
		if err != nil {
			break
		}
		switch x.Kind {
		case recording.KindOutput:
			lines[x.Output.Stream] = x.Output.Text
		case recording.KindMeta:
			if x.Meta.ExitCode != nil {
				code = *x.Meta.ExitCode
			}
		}
	}
	if lines[1] != "out" || lines[2] != "err" || code != 3 {
		t.Errorf("%v, exit code %d", lines, code)
	}
}

// Where a program keeps no ledger, what it and its children hold is sampled.
func TestSampler(t *testing.T) {
	snap := sample.Four()
	child := sample.Serve(101, sample.Use(&snap.Devices[0], 1<<30, 0))
	child.PPID = 100
	parent := sample.Serve(100, sample.Use(&snap.Devices[0], 2<<30, 0))
	snap.Processes = []model.Process{parent, child, sample.Serve(7, sample.Use(&snap.Devices[0], 4<<30, 0))}
	s := &sampler{from: host.Options{Instead: still{snap}}}
	defer s.close()
	begun := time.Now()
	s.look(100, begun, begun.Add(time.Second)) // a ledger may still come
	if len(s.now()) != 0 {
		t.Error("it is sampled at once")
	}
	s.look(100, begun, begun.Add(3*time.Second))
	r := &runreport.Report{}
	s.fill(r)
	if r.Method != runreport.Sampled || len(r.Run.Devices) != 1 {
		t.Fatalf("%+v", r)
	}
	if p := r.Run.Devices[0].Pools["dram"]; p.Peak != 3<<30 || p.PeakBound == "exact" || p.Blocks != nil {
		t.Errorf("%+v", p)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("TTMON_STACKS", "left over")
	t.Setenv("LD_PRELOAD", "/x.so")
	o := options(t, `echo "$TTMON_STACKS|$LD_PRELOAD|$TTMON_RUN"`)
	o.Stacks = "native"
	if _, err := Run(o); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(o.Stdout.Name())
	parts := strings.Split(strings.TrimSpace(string(b)), "|")
	last := parts[max(len(parts)-3, 0):]
	if err != nil || len(last) != 3 || !strings.HasSuffix(last[0], "native") || !strings.HasSuffix(last[1], ":/x.so") || last[2] == "" {
		t.Errorf("%q, %v", b, err)
	}
}
