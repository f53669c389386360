package session

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// swept is a sweep that found a ledger with a failure that happened count times.
func swept(count uint64) *track.Sweep {
	now := time.Now()
	l := &ledgerfile.Ledger{
		PID: os.Getpid(), Comm: "python", Chips: []ledgerfile.Chip{{ID: 77}},
		Failures: []ledgerfile.Failure{{
			Number: 1, Kind: ledgerfile.NoRoom, Count: count, First: now, Last: now, Time: now, Bytes: 128, Chips: []int{0},
			Lists: []ledgerfile.FailedList{{List: ledgerfile.List{Pool: ledgerfile.DRAM, Banks: 8, Capacity: 4096}, Blocks: []ledgerfile.FailedBlock{{Bytes: 4032}}}},
		}},
	}
	return &track.Sweep{Processes: []track.Process{{PID: os.Getpid(), Path: "/dev/shm/a", Ledger: l, State: track.State(l, os.Getpid(), 1)}}}
}

// A failure is told once; one that repeats is told again when some time has passed,
// and at the end.
func TestLedgerFailures(t *testing.T) {
	var l ledgerFailures
	for _, tt := range []struct {
		count uint64
		told  int
	}{{1, 1}, {1, 0}, {2, 0}, {900, 0}} {
		if list := l.new(swept(tt.count)); len(list) != tt.told {
			t.Errorf("with %d of them %d are told", tt.count, len(list))
		}
	}
	if rest := l.rest(); len(rest) != 1 || rest[0].Count != 900 || rest[0].ID != "f1" {
		t.Errorf("at the end: %+v", rest)
	}
	for key, x := range l.told {
		x.at = x.at.Add(-againAfter)
		l.told[key] = x
	}
	if list := l.new(swept(901)); len(list) != 1 || list[0].Count != 901 || len(l.rest()) != 0 {
		t.Errorf("later: %+v", list)
	}
}

// kept is a host that a ttmond stands for: it tells failures itself.
type kept struct{ moving }

func (k *kept) Next(ctx context.Context) (*model.Snapshot, error) {
	s, err := k.moving.Next(ctx)
	s.Source = model.Daemon
	return s, err
}

// What programs under ttmon run fail to get is in the recording, without a ttmond,
// too; with one it is not told twice.
func TestFailuresAreRecorded(t *testing.T) {
	for _, tt := range []struct {
		name string
		host host.Source
		want int
	}{{"alone", &moving{time.Now()}, 1}, {"with a ttmond", &kept{moving{time.Now()}}, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.ttrec")
			s, err := New(Options{File: file, Interval: time.Millisecond, Host: host.Options{Instead: tt.host}})
			if err != nil {
				t.Fatal(err)
			}
			until(t, s, func() bool { return s.snapshots >= 1 })
			s.failures(s.ledgers.new(swept(1)), time.Now())
			s.failures(s.ledgers.new(swept(5)), time.Now())
			if err := s.End(nil); err != nil {
				t.Fatal(err)
			}
			r, err := recording.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			list, err := r.Failures()
			if err != nil || len(list) != tt.want || tt.want > 0 && list[0].Count != 5 {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}
