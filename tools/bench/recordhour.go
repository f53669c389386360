package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/eventlog"
	"github.com/ttmon/ttmon/internal/history/disk"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// hourStart is when hours that are made up begin.
var hourStart = time.Unix(1_800_000_000, 0)

// snapshotsOf are the snapshots of a recording, as JSON.
func snapshotsOf(file string) (docs [][]byte, err error) {
	r, err := recording.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for c := r.Begin(); ; {
		rec, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if rec.Kind == recording.KindSnapshot {
			docs = append(docs, c.JSON())
		}
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("%s has no snapshots", file)
	}
	return docs, nil
}

// madeUp writes a recording with the writer that ttmon record has: a snapshot a
// second, an event a minute, and so many allocations and as many frees a second of
// a program on all chips of a galaxy.
func madeUp(file string, docs [][]byte, seconds, perSecond int) error {
	w, err := recording.Create(file, true)
	if err != nil {
		return err
	}
	var p *busyProgram
	if perSecond > 0 {
		if p, err = newBusyProgram(w); err != nil {
			return err
		}
	}
	for s := range seconds {
		now := hourStart.Add(time.Duration(s) * time.Second)
		err := w.Snapshot(now, docs[s%len(docs)])
		if err == nil && s%60 == 30 {
			err = w.Event(eventlog.Event{Time: now, Kind: "throttled", Level: eventlog.Warning, Text: "device 0 is slowed down"})
		}
		for i := 0; err == nil && i < perSecond; i++ {
			at := now.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
			if err = p.step(w, at); err == nil && i%100 == 0 {
				err = w.Tick(at, time.Second) // as ttmon record does
			}
		}
		if err == nil {
			err = w.Tick(now.Add(time.Second), time.Second)
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// busyProgram holds some thousand blocks and replaces one after the other, in
// its place.
type busyProgram struct {
	rng  *rand.Rand
	held int
}

const (
	busyBlocks = 4000
	busyPlaces = 64
	busySlot   = 4 << 20 // bytes of a bank from one block to the next
)

func newBusyProgram(w *recording.Writer) (*busyProgram, error) {
	chips := make([]uint64, 32)
	for i := range chips {
		chips[i] = uint64(1000 + i)
	}
	list := recording.List{ID: 2, Process: 1, Allocator: 1, Pool: model.DRAM.String(), Chips: chips, Geometry: blocks.Geometry{
		Pool: model.DRAM, Banks: 12, Capacity: busyBlocks * busySlot, Align: 64,
	}}
	err := errors.Join(w.Meta(hourStart, recording.Meta{Version: "bench", Started: hourStart}),
		w.Process(hourStart, recording.Process{ID: 1, PID: 4242, Name: "python", Method: recording.ByLedger}), w.List(hourStart, list))
	for i := range uint32(busyPlaces) {
		err = errors.Join(err, w.Site(hourStart, recording.Site{
			ID: i + 1, Tag: fmt.Sprintf("layer %d", i%8), Stack: []ledgerfile.Frame{{File: "/home/user/model.py", Line: int(10 + i), Function: "forward"}},
		}))
	}
	return &busyProgram{rng: rand.New(rand.NewPCG(1, 2))}, err
}

// step allocates a block, and frees one before if as many are held as are to be.
func (p *busyProgram) step(w *recording.Writer, at time.Time) error {
	slot := p.held
	if p.held < busyBlocks {
		p.held++
	} else {
		slot = p.rng.IntN(busyBlocks)
		if err := w.Free(at, 2, uint64(slot)*busySlot); err != nil {
			return err
		}
	}
	size := uint64(64 << p.rng.IntN(10))
	if p.rng.IntN(1000) == 0 { // some are told singly in traces
		size = 1 << 20
	}
	return w.Alloc(at, 2, blocks.Block{Addr: uint64(slot) * busySlot, Size: size, Asked: size * 12, Site: 1 + uint32(p.rng.IntN(busyPlaces))})
}

// recordedHour makes an hour of the snapshots of a shorter recording, opens it
// and looks moments up.
func (l *lab) recordedHour(docs [][]byte) error {
	file := filepath.Join(l.dir, "hour.ttrec")
	used := ourCPU()
	if err := madeUp(file, docs, 3600, 0); err != nil {
		return err
	}
	used = ourCPU() - used
	begin := time.Now()
	r, err := recording.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	opened := time.Since(begin)
	const seeks = 30
	begin = time.Now()
	for range seeks {
		c, err := r.Seek(hourStart.Add(time.Duration(rand.IntN(3600)) * time.Second))
		if err != nil {
			return err
		}
		if _, err := c.Snapshot(); err != nil {
			return err
		}
	}
	found := time.Since(begin) / seeks
	read := ourCPU()
	if err := charts(l.dir, r); err != nil {
		return err
	}
	read = ourCPU() - read
	fmt.Printf("an hour of 32 chips once a second: %.1f MB, %.1f s of CPU to encode; opened in %s ms, a moment is found in %s ms, the charts of its page take %.1f s of CPU\n",
		float64(size(file))/1e6, used.Seconds(), ms(opened), ms(found), read.Seconds())
	return nil
}

// charts reads a recording as ttmon replay --serve does for its charts.
func charts(dir string, r *recording.Reader) error {
	store, err := disk.OpenTemporary(filepath.Join(dir, "charts"))
	if err != nil {
		return err
	}
	defer store.Close()
	for c := r.Snapshots(); ; {
		rec, err := c.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Kind != recording.KindSnapshot {
			continue
		}
		s, err := c.Snapshot()
		if err != nil {
			return err
		}
		store.Add(s)
	}
}

// busyMinutes makes a recording of a program that allocates 10 000 blocks a
// second, and shows, compares and exports it. A twelfth of an hour: an hour takes
// twelve times the time, and as much memory.
func (l *lab) busyMinutes(docs [][]byte) error {
	const seconds, perSecond = 300, 10_000
	file := filepath.Join(l.dir, "busy.ttrec")
	used := ourCPU()
	if err := madeUp(file, docs, seconds, perSecond); err != nil {
		return err
	}
	fmt.Printf("5 minutes of 32 chips and 10,000 allocations and as many frees a second: %.1f MB, %.1f s of CPU to encode\n",
		float64(size(file))/1e6, (ourCPU() - used).Seconds())
	out := filepath.Join(l.dir, "busy.out")
	for _, args := range [][]string{
		{"replay", file, "--at", "150s", "smi"},
		{"replay", file, "--at", "150s", "blocks"},
		{"replay", file, "--at", "peak", "smi"},
		{"replay", file, "events"},
		{"diff", file + "@1m", file + "@4m"},
		{"export", file, "--pprof", "-o", out},
		{"export", file, "--perfetto", "-o", out},
		{"export", file, "--chrome", "-o", out},
		{"export", file, "--csv", "-o", out},
		{"export", file, "--jsonl", "-o", out},
		{"export", file, "--openmetrics", "-o", out},
	} {
		cmd := exec.Command(filepath.Join(l.bin, "ttmon"), args...)
		var said bytes.Buffer
		cmd.Stderr = &said
		most, err := memoryOf(cmd)
		if err != nil {
			return fmt.Errorf("ttmon %s: %w: %s", strings.Join(args, " "), err, said.Bytes())
		}
		wrote := ""
		if n := size(out); n > 0 {
			wrote = fmt.Sprintf("%8.1f MB", float64(n)/1e6)
			os.Remove(out)
		}
		what := strings.ReplaceAll(strings.ReplaceAll(strings.Join(args, " "), " -o "+out, ""), file, "FILE")
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		fmt.Printf("  %-36s %7.2f s of CPU %6.1f MB of memory%s\n", what, cpu.Seconds(), float64(most)/1e6, wrote)
	}
	return nil
}

// memoryOf runs a command and tells how much memory it had at most, in bytes. What
// the kernel counts for wait(2) is at least that of the program that started it.
func memoryOf(cmd *exec.Cmd) (most int64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan struct{})
	watched := make(chan int64)
	go func() {
		most := int64(0)
		for {
			if n, err := peakMemory(cmd.Process.Pid); err == nil {
				most = max(most, n)
			}
			select {
			case <-done:
				watched <- most
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	err = cmd.Wait()
	close(done)
	return <-watched, err
}

// peakMemory is the most memory that a process has had so far.
func peakMemory(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(b, []byte("VmHWM:"))
	var kib int64
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		return 0, err
	}
	return kib << 10, nil
}
