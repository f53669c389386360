package truth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
)

// What the chips of a scenario run in turn, in ns.
const (
	addTime, reluTime = 2_000_000, 1_500_000
	slicesFed         = 150 // of each, on each chip
)

// fedProgram is a program that was fed.
type fedProgram struct {
	name          string
	pause, length uint64 // ns
	ended         time.Time
}

// sliced: every program that chips report is a slice of the trace that people look
// at, with its name, its length and its pause, on a track of its chip.
func sliced(s *stage, j *workJob) {
	s.do(j.Job, alloc("a", "dram", 65536), ttnn.Step{"do": "add", "name": "b", "of": []string{"a", "a"}})
	names, ids := []string{"eltwise/binary_ng", "eltwise/binary_ng"}, []uint32{1, 1}
	if len(j.feed.Chips) == 1 { // in mock mode a mesh runs no other operation
		s.do(j.Job, ttnn.Step{"do": "relu", "name": "c", "of": []string{"a"}})
		names[1], ids[1] = "eltwise/unary", 2
	}
	begun, clocks := time.Now(), []uint64{}
	for _, c := range j.feed.Chips {
		clocks = append(clocks, c.Clock)
	}
	// feed reports programs when they have ended, so that the chips' clocks and the
	// host's are as far apart as they were.
	feed := func(n int) (fed [][]fedProgram) {
		fed = make([][]fedProgram, len(clocks))
		for i := range 2 * n {
			length := []uint64{addTime, reluTime}[i%2]
			time.Sleep(time.Duration(length) + time.Millisecond)
			for k, c := range j.feed.Chips {
				now := time.Now()
				pause := clocks[k] + uint64(now.Sub(begun)) - length - c.Clock
				c.Program(ids[i%2], pause, length)
				fed[k] = append(fed[k], fedProgram{names[i%2], pause, length, now})
			}
		}
		return fed
	}
	s.until("operations have names", func() bool { feed(1); return s.knowsOps(j, names...) })
	file := filepath.Join(s.TempDir(), "slices.ttrec")
	record := s.host.Command(context.Background(), filepath.Join(bin, "ttmon"), "record", "--programs", "-o", file, "--daemon", j.d.api)
	s.start(record)
	s.until("the recorder follows", func() bool { return s.followers(j.d) == 2 })
	fed := feed(slicesFed)
	for _, c := range j.feed.Chips {
		if err := c.Flush(); err != nil {
			s.Fatal(err)
		}
	}
	s.interrupt(record)
	trace := filepath.Join(s.TempDir(), "trace")
	if got := s.run(filepath.Join(bin, "ttmon"), "export", file, "--perfetto", "-o", trace); got.code != 0 {
		s.Fatalf("export: %+v", got)
	}
	s.slicesOf(j, trace, begun, fed)
}

// knowsOps reports whether all chips of a job have operations with these names.
func (s *stage) knowsOps(j *workJob, names ...string) bool {
	chips := processOf(s.daemonSnapshot(j.d), j.PID).Work.Chips
	for i := range chips {
		for _, name := range names {
			if !slices.ContainsFunc(chips[i].Operations, func(o model.Operation) bool { return o.Name == name }) {
				return false
			}
		}
	}
	return len(chips) == len(j.feed.Chips)
}

// followers is how many clients follow allocations or programs.
func (s *stage) followers(d *daemon) int {
	s.Helper()
	var health struct {
		Budgets []struct {
			Name string
			Used int
		}
	}
	_ = json.Unmarshal([]byte(s.run(filepath.Join(bin, "ttmon"), "daemon", "status", "--json", "--daemon", d.api).out), &health)
	for _, b := range health.Budgets {
		if b.Name == "api_followers" {
			return b.Used
		}
	}
	return 0
}

// interrupt ends a command as a user does.
func (s *stage) interrupt(cmd *exec.Cmd) {
	s.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		s.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		s.Fatalf("%v: %v", cmd.Args, err)
	}
}

// slicesOf holds the slices of a trace against what was fed.
func (s *stage) slicesOf(j *workJob, trace string, begun time.Time, fed [][]fedProgram) {
	s.Helper()
	root, err := ttnn.Repository()
	if err != nil {
		s.Fatal(err)
	}
	answers, err := programs.QueryTrace(root, trace,
		fmt.Sprintf(`SELECT t.name, s.name, s.ts - %d, s.dur FROM slice s JOIN track t ON s.track_id = t.id WHERE t.name LIKE 'programs%%' ORDER BY s.ts`, begun.UnixNano()),
		`SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0`)
	if errors.Is(err, programs.ErrNoTraceProcessor) {
		s.Skip(err)
	}
	if err != nil {
		s.Fatal(err)
	}
	s.fact("errors of trace_processor", "0", fmt.Sprint(len(answers[1])))
	tracks := map[string][]ranSlice{}
	for _, row := range answers[0] {
		name := row[0].(string)
		tracks[name] = append(tracks[name], ranSlice{row[1].(string), row[2].(float64), row[3].(float64)})
	}
	for i := range fed {
		which, track := "chip", fmt.Sprintf("programs of python %d", j.PID)
		if len(fed) > 1 {
			which = []string{"L", "R"}[i]
			track = fmt.Sprintf("programs on %s of python %d", which, j.PID)
		}
		s.judgeSlices(which, tracks[track], fed[i], begun)
		delete(tracks, track)
	}
	s.fact("other tracks", "0", fmt.Sprint(len(tracks)))
}

// ranSlice is a slice of a program, its start and length in ns.
type ranSlice struct {
	name          string
	start, length float64
}

// judgeSlices compares the slices of a track with what was fed.
func (s *stage) judgeSlices(which string, list []ranSlice, fed []fedProgram, begun time.Time) {
	s.Helper()
	s.fact(which+": slices", fmt.Sprint(len(fed)), fmt.Sprint(len(list)))
	if len(list) != len(fed) {
		return
	}
	names, lengths, pauses, overlaps := 0, 0, 0, 0
	early, late := 0.0, 0.0
	for i, x := range list {
		f := fed[i]
		names += count(x.name == f.name)
		lengths += count(x.length == float64(f.length))
		end := x.start + x.length
		off := end - float64(f.ended.Sub(begun))
		early, late = max(early, -off), max(late, off)
		if i > 0 {
			between := x.start - list[i-1].start - list[i-1].length
			pauses += count(between == float64(f.pause))
			overlaps += count(between < 0)
		}
	}
	n := len(fed)
	s.fact(which+": with their names, lengths; overlaps", fmt.Sprint(n, n, 0), fmt.Sprint(names, lengths, overlaps))
	v, why := right, ""
	if pauses < n-1 {
		v, why = bounded, "places on the host's clock were corrected between two programs"
	}
	if pauses < n*3/4 {
		v, why = wrong, "most of them were moved"
	}
	s.enter(row{what: which + ": pauses as they were", truth: fmt.Sprint(n - 1), said: fmt.Sprint(pauses), verdict: v, why: why})
	v = bounded
	if early > 2e5 || late > 1e9 { // the machine may be busy
		v = wrong
	}
	s.enter(row{
		what: which + ": places on the host's clock", truth: "late by what a record takes, 0.1 ms early at most",
		said: fmt.Sprintf("%.0f µs early, %.0f µs late at most", early/1e3, late/1e3), verdict: v, why: "how long a record takes is not known",
	})
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
