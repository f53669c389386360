package recorder

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/launches"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// some is a batch of programs of a chip of process 42.
func some(number uint32, n, from, lost uint64, programs int) *launches.Batch {
	b := &launches.Batch{PID: 42, StartTicks: 7, Process: "train", Chip: 77 + uint64(number), Number: number, N: n, From: from, Lost: lost}
	for i := range programs {
		b.Programs = append(b.Programs, launches.Program{Start: tuitest.Start.UnixNano() + int64(i)*1000, Length: 500, Name: "matmul"})
	}
	return b
}

// Programs are recorded as they come, and what is missing is said where it is
// missing.
func TestProgramsRecorded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		send   func(r *Recorder, now time.Time)
		want   []string // programs, missed, lost, of each record; "?" if more may be missing
		missed uint64
	}{
		{"one after the other", func(r *Recorder, now time.Time) {
			r.Programs(some(0, 1, 1, 0, 5), now)
			r.Programs(some(0, 6, 1, 0, 2), now)
			r.Programs(some(1, 1, 1, 0, 3), now)
		}, []string{"5 0 0", "2 0 0", "3 0 0"}, 0},
		{"what ran before is not missing", func(r *Recorder, now time.Time) {
			r.Programs(some(0, 1000, 1000, 17, 5), now)
			r.Programs(some(0, 1005, 1000, 17, 1), now)
		}, []string{"5 0 0", "1 0 0"}, 0},
		{"a client that is too slow from the start", func(r *Recorder, now time.Time) { r.Programs(some(0, 1100, 1000, 0, 5), now) }, []string{"5 100 0"}, 100},
		{"and later", func(r *Recorder, now time.Time) {
			r.Programs(some(0, 1, 1, 0, 5), now)
			r.Programs(some(0, 10, 1, 0, 1), now)
		}, []string{"5 0 0", "1 4 0"}, 4},
		{"none of them can be kept", func(r *Recorder, now time.Time) { r.Programs(some(0, 51, 1, 0, 0), now) }, []string{"0 50 0"}, 50},
		{"ttmond cannot read all", func(r *Recorder, now time.Time) {
			r.Programs(some(0, 1, 1, 3, 5), now)
			r.Programs(some(1, 1, 1, 5, 5), now)
			r.Programs(some(0, 6, 1, 5, 0), now)
		}, []string{"5 0 3", "5 0 2"}, 5},
		{"a connection that was lost", func(r *Recorder, now time.Time) {
			r.Programs(some(0, 1, 1, 0, 5), now)
			r.ProgramsBroken()
			r.Programs(some(0, 26, 26, 0, 5), now)
			r.Programs(some(1, 9, 9, 0, 5), now) // new since
		}, []string{"5 0 0", "5 20 0", "5 0 0 ?"}, 20},
		{"a ttmond that begins its account again", func(r *Recorder, now time.Time) {
			r.Programs(some(0, 500, 500, 0, 5), now)
			r.ProgramsBroken()
			r.Programs(some(0, 3, 3, 0, 5), now)
		}, []string{"5 0 0", "5 0 0 ?"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRecorded(t, tuitest.Start)
			tt.send(r.Recorder, tuitest.Start.Add(time.Second))
			recorded, missed := r.CountPrograms()
			list, _ := r.end(t)
			var got []string
			n := uint64(0)
			for _, x := range list {
				if x.Kind != recording.KindPrograms {
					continue
				}
				p := x.Programs
				text := fmt.Sprint(len(p.List), " ", p.Missed, " ", p.Lost)
				if p.Broken {
					text += " ?"
				}
				got = append(got, text)
				n += uint64(len(p.List))
				if p.PID != 42 || p.Process != "train" || p.Chip != 77+uint64(p.Number) {
					t.Errorf("%+v", p)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if recorded != n || missed != tt.missed {
				t.Errorf("%d recorded of %d, %d missed", recorded, n, missed)
			}
		})
	}
}
