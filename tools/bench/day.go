package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/ttmon/ttmon/internal/history/disk"
	"github.com/ttmon/ttmon/internal/promapi"
	"github.com/ttmon/ttmon/internal/view/prom"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// benchRemember fills a history with a day of 32 devices whose values move, as
// fast as it goes: the last two hours every second, the rest every 15 s, which is
// what is kept of it. It tells what a sample costs to append and on the disk,
// and a chart of the whole day.
func benchRemember(l *lab) error {
	const devices, day, fine = 32, 24 * time.Hour, 2 * time.Hour
	dir := filepath.Join(l.dir, "day")
	s, err := disk.Open(disk.Options{
		Dir: dir, MemoryDir: filepath.Join(l.dir, "day-memory"), FineFor: 3 * time.Hour, CoarseFor: 30 * 24 * time.Hour,
		MaxBytes: 1 << 30, MaxSeries: 20_000,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	w := prom.NewWalker(prom.Options{Version: "bench"})
	end := time.Now().Truncate(time.Second)
	row := func(at time.Time, n int) time.Duration {
		snap := tuitest.Host(devices, n)
		snap.Time = at
		begun := time.Now()
		w.Observe(snap)
		s.AddSnapshot(func(emit prom.Emit) { w.Walk(snap, nil, emit) })
		s.Append(at)
		return time.Since(begun)
	}
	n := 0
	for at := end.Add(-day); at.Before(end.Add(-fine)); at = at.Add(disk.CoarseEvery) {
		row(at, n)
		n++
	}
	before, took := s.Stats().Samples, time.Duration(0)
	size := treeSize(dir)
	for at := end.Add(-fine); at.Before(end); at = at.Add(time.Second) {
		took += row(at, n)
		n++
	}
	samples := s.Stats().Samples - before
	grown := treeSize(dir) - size
	fmt.Printf("appending  %.2f ms a second for %d series of %d devices: %.2f %% of a core, %.0f ns a sample\n",
		took.Seconds()*1e3/fine.Seconds(), s.Stats().Series, devices, took.Seconds()/fine.Seconds()*100, float64(took.Nanoseconds())/float64(samples))
	fmt.Printf("on disk    %.1f bytes a sample while they are in the write-ahead log\n", float64(max(grown, 0))/float64(samples))
	begun := time.Now()
	if err := s.Compact(); err != nil {
		return err
	}
	fmt.Printf("writing blocks of it: %s ms\n", ms(time.Since(begun)))
	for name, since := range map[string]time.Time{"fine": end.Add(-fine), "coarse": end.Add(-day)} {
		if err := blockSize(filepath.Join(dir, name), name, since); err != nil {
			return err
		}
	}
	return dayChart(s, end, day)
}

// blockSize is what samples take once they are in blocks.
func blockSize(dir, name string, since time.Time) error {
	bytes, samples, err := blocksOf(dir, since)
	if err != nil {
		return err
	}
	fmt.Printf("on disk    %.2f bytes a sample in the blocks of the %s history (%.1f million samples)\n", float64(bytes)/float64(max(samples, 1)), name, float64(samples)/1e6)
	return nil
}

// blocksOf is what the blocks of a database take that begin after a time, and how
// many samples they have.
func blocksOf(dir string, since time.Time) (bytes, samples int64, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "meta.json"))
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return 0, 0, err
		}
		var meta struct {
			MinTime int64
			Stats   struct{ NumSamples int64 }
		}
		if err := json.Unmarshal(b, &meta); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", file, err)
		}
		if since.IsZero() || meta.MinTime >= since.UnixMilli() {
			bytes, samples = bytes+treeSize(filepath.Dir(file)), samples+meta.Stats.NumSamples
		}
	}
	return bytes, samples, nil
}

// dayChart asks for 32 lines over a day.
func dayChart(s *disk.Store, end time.Time, day time.Duration) error {
	server := httptest.NewServer(http.StripPrefix("/prometheus", promapi.New(promapi.Options{Queryable: s, Version: "bench"})))
	defer server.Close()
	took, size, err := fetch(server.URL + "/prometheus/api/v1/query_range?" + url.Values{
		"query": {"tenstorrent_core_power_watts"}, "start": {fmt.Sprint(end.Add(-day).Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {"300"},
	}.Encode())
	if err != nil {
		return err
	}
	fmt.Printf("a day's chart of 32 lines, 289 points each: %s ms, %d KB. Aim: 50 ms\n", ms(took), size/1000)
	s.Close()
	return nil
}

// treeSize is what the files below a directory take.
func treeSize(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return min(n, math.MaxInt64)
}
