package main

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/ttmon/ttmon/internal/history/disk"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/promapi"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/runs/compare"
	"github.com/ttmon/ttmon/internal/runs/keep"
	"github.com/ttmon/ttmon/internal/view/prom"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

const (
	monthDays      = 30
	monthDevices   = 32
	monthProcesses = 64
	monthRun       = time.Hour // that each of the processes takes, one after the other
)

// benchMonth measures a month of history and runs on a host with 32 boards and 64
// processes: the disk, the time to the first picture, the time of a comparison.
func benchMonth(l *lab) error {
	if err := monthHistory(l); err != nil {
		return err
	}
	return monthRuns(l)
}

// monthHistory writes the power of all devices for a month, a sample every 15 s,
// and four hours of all that is kept, which say what a sample takes.
func monthHistory(l *lab) error {
	series, perSample, err := sampleSize(l)
	if err != nil {
		return err
	}
	rows := monthDays * 24 * time.Hour / disk.CoarseEvery
	fmt.Printf("history  %d series, %.2f bytes a sample in blocks: %.0f MB for %d days of coarse history\n",
		series, perSample, perSample*float64(series)*float64(rows)/1e6, monthDays)
	dir, end := filepath.Join(l.dir, "month"), time.Now().Truncate(time.Second)
	begun := time.Now()
	if err := writeMonth(filepath.Join(dir, "coarse"), end); err != nil {
		return err
	}
	fmt.Printf("history  a month of %d lines written in %.1f s\n", monthDevices, time.Since(begun).Seconds())
	begun = time.Now()
	s, err := openMonth(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Printf("history  opened in %s ms\n", ms(time.Since(begun)))
	return monthCharts(s, end)
}

// writeMonth writes the power of the devices as blocks of a day, as the coarse
// history has them.
func writeMonth(dir string, end time.Time) error {
	var series []blockSeries
	for i := range monthDevices {
		series = append(series, blockSeries{
			labels.FromStrings("__name__", "tenstorrent_core_power_watts", "device", fmt.Sprint(i), "pci", fmt.Sprintf("0000:%02x:00.0", i)),
			func(at time.Time) float64 { return float64(60 + (at.Unix()/15*7+int64(i)*13)%40) },
		})
	}
	const day = 24 * time.Hour
	for from := end.Add(-monthDays * day).Truncate(day); from.Before(end); from = from.Add(day) {
		until := from.Add(day)
		if until.After(end) {
			until = end
		}
		if err := writeBlock(dir, blockSpan{from, until, disk.CoarseEvery}, series); err != nil {
			return fmt.Errorf("writing a day: %w", err)
		}
	}
	return nil
}

func openMonth(dir string) (*disk.Store, error) {
	return disk.Open(disk.Options{
		Dir: dir, MemoryDir: dir + "-memory", FineFor: 3 * time.Hour, CoarseFor: (monthDays + 1) * 24 * time.Hour, MaxBytes: 4 << 30, MaxSeries: 20_000,
	})
}

// sampleSize is how many series there are, and what a sample of them takes in a block.
func sampleSize(l *lab) (series int, perSample float64, err error) {
	dir := filepath.Join(l.dir, "month-sample")
	s, err := openMonth(dir)
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	w := prom.NewWalker(prom.Options{Version: "bench", Processes: monthProcesses, MaxWorkloads: monthProcesses})
	end := time.Now().Add(-24 * time.Hour).Truncate(2 * time.Hour)
	n := 0
	for at := end.Add(-4 * time.Hour); at.Before(end); at = at.Add(disk.CoarseEvery) {
		snap := tuitest.Host(monthDevices, n)
		snap.Time = at
		for i := range monthProcesses {
			snap.Processes = append(snap.Processes, monthProcess(&snap.Processes[0], i))
		}
		w.Observe(snap)
		s.AddSnapshot(func(emit prom.Emit) { w.Walk(snap, nil, emit) })
		s.Append(at)
		n++
	}
	series = s.Stats().Series
	if err := s.Compact(); err != nil {
		return 0, 0, err
	}
	bytes, samples, err := blocksOf(filepath.Join(dir, "coarse"), time.Time{})
	if samples == 0 {
		return 0, 0, errors.Join(err, errors.New("no block was written"))
	}
	return series, float64(bytes) / float64(samples), err
}

// monthProcess is another process like one, on one device.
func monthProcess(like *model.Process, i int) model.Process {
	p := *like
	p.PID = 100_000 + i
	at := i % len(p.Devices)
	p.Devices = p.Devices[at : at+1 : at+1]
	return p
}

// monthCharts asks for what is drawn first: a day, and the month.
func monthCharts(s *disk.Store, end time.Time) error {
	server := httptest.NewServer(promapi.New(promapi.Options{Queryable: s, Version: "bench"}))
	defer server.Close()
	for _, c := range []struct {
		what string
		span time.Duration
		expr string
	}{
		{"an hour", time.Hour, "tenstorrent_core_power_watts"},
		{"a day", 24 * time.Hour, "max_over_time(tenstorrent_core_power_watts[172s])"},
		{"the month, one device", monthDays * 24 * time.Hour, `max_over_time(tenstorrent_core_power_watts{device="7"}[5184s])`},
		{"the month", monthDays * 24 * time.Hour, "max_over_time(tenstorrent_core_power_watts[5184s])"},
	} {
		took, size, err := fetch(server.URL + "/api/v1/query_range?" + url.Values{
			"query": {c.expr}, "start": {fmt.Sprint(end.Add(-c.span).Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {fmt.Sprint(int(c.span.Seconds() / 500))},
		}.Encode())
		if err != nil {
			return fmt.Errorf("a chart of %s: %w", c.what, err)
		}
		fmt.Printf("picture  %-22s 500 points a line: %s ms, %d KB\n", c.what, ms(took), size/1000)
	}
	return nil
}

// monthRuns keeps the runs of a month: each process runs for an hour, again and
// again, two on a device.
func monthRuns(l *lab) error {
	dir := filepath.Join(l.dir, "month-runs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	end := time.Now().Truncate(time.Second)
	store := keep.OpenStore(dir, 0, 0)
	defer store.Close()
	begun, id := time.Now(), uint64(0)
	for at := end.Add(-monthDays * 24 * time.Hour); at.Before(end); at = at.Add(monthRun) {
		list := make([]runs.Run, monthProcesses)
		for i := range list {
			id++
			list[i] = monthRunOf(id, i, at)
		}
		if err := store.Append(list, end); err != nil {
			return err
		}
	}
	fmt.Printf("runs     %d runs of %d processes in %d days: %.1f MB on disk (64 MB at most), %.0f bytes each; written in %.1f s\n",
		id, monthProcesses, monthDays, float64(store.Bytes())/1e6, float64(store.Bytes())/float64(id), time.Since(begun).Seconds())
	uid := 1003
	for _, q := range []struct {
		what  string
		query runs.Query
	}{
		{"the newest 20", runs.Query{Limit: 20}},
		{"since yesterday", runs.Query{Since: end.Add(-24 * time.Hour)}},
		{"a run of a month ago, by number", runs.Query{Names: []string{"r7"}}},
		{"a run of a month ago, by process", runs.Query{Names: []string{"100007"}}},
		{"the last 5 of a command", runs.Query{Command: monthCommand(7), Limit: 5}},
		{"the last 50 of a user", runs.Query{UID: &uid, Limit: 50}},
		{"all that failed in the month", runs.Query{Failed: true}},
		{"a word that no run has", runs.Query{Text: "nowhere"}},
		{"all of the month, at most 10,000", runs.Query{}},
	} {
		if err := timeFind(store, q.what, q.query); err != nil {
			return err
		}
	}
	return monthCompare(store, id)
}

func timeFind(store *keep.Store, what string, q runs.Query) error {
	best, n := time.Duration(0), 0
	for i := 0; i < 3 && best < time.Second; i++ { // the slow ones once
		begun := time.Now()
		list, _, err := store.Find(q)
		if err != nil {
			return err
		}
		if took := time.Since(begun); i == 0 || took < best {
			best = took
		}
		n = len(list)
	}
	fmt.Printf("runs     %-34s %8s ms for %d\n", what, ms(best), n)
	return nil
}

// monthCompare compares the last run of a command with the five before it, and with
// one of a month ago.
func monthCompare(store *keep.Store, last uint64) error {
	begun := time.Now()
	list, _, err := store.Find(runs.Query{Command: monthCommand(int(last-1) % monthProcesses), Limit: 6})
	if err != nil {
		return err
	}
	usual, err := compare.NewSide("usual", list[:5]...)
	if err != nil {
		return err
	}
	this, err := compare.NewSide("this", list[5])
	if err != nil {
		return err
	}
	_ = compare.Compare(usual, this)
	fmt.Printf("compare  a run with the median of the five before %s ms\n", ms(time.Since(begun)))
	begun = time.Now()
	list, _, err = store.Find(runs.Query{Names: []string{"r7", fmt.Sprint(last)}})
	if err != nil {
		return err
	}
	if len(list) != 2 {
		return fmt.Errorf("%d runs of two are found", len(list))
	}
	a, err := compare.NewSide("a", list[0])
	if err != nil {
		return err
	}
	b, err := compare.NewSide("b", list[1])
	if err != nil {
		return err
	}
	_ = compare.Compare(a, b)
	fmt.Printf("compare  two runs, a month apart %s ms\n", ms(time.Since(begun)))
	return nil
}

func monthCommand(i int) string {
	return fmt.Sprintf("python3 /srv/models/serve-%d.py --batch 8 --model llama", i)
}

// monthRunOf is a run of a process at a time, with all that is usually known.
func monthRunOf(id uint64, process int, at time.Time) runs.Run {
	ended := at.Add(monthRun - time.Duration(id%600)*time.Second)
	zero, one := 0, 1
	code := &zero
	if id%97 == 0 {
		code = &one
	}
	pool := func(peak uint64) runs.Pool {
		return runs.Pool{Peak: peak + id%1e6, PeakBound: "at_least", PeakAt: at.Add(time.Minute), Mean: float64(peak) * 0.8, MeanBound: "exact", Seconds: 3000.5, Held: peak / 2}
	}
	stat := func(v float64) *runs.Stat {
		return &runs.Stat{Mean: v + float64(id%17)/7, Max: v * 1.2, MaxAt: at.Add(2 * time.Minute), Seconds: 3000.5}
	}
	d := runs.Device{
		Index: process / 2, BusID: fmt.Sprintf("0000:%02x:00.0", process/2), Board: "p150a", ASICID: fmt.Sprint(9153020673 + process/2), Open: 3000.5, Shared: 2990,
		Pools: map[string]runs.Pool{"dram": pool(8 << 30), "l1": pool(60 << 20), "trace": pool(1 << 20), "cb": pool(4 << 20)},
		Power: stat(80), Energy: 240_000 + float64(id%1000), Temperature: stat(61), Clock: stat(1000), Activity: stat(0.6),
		PCIe: &runs.PCIe{ToDevice: 1 << 40, FromDevice: id << 20, Bound: "at_least"}, Trouble: map[model.ConditionKind]float64{model.ConditionThrottled: float64(id % 50)},
	}
	return runs.Run{
		ID: id, Host: "lab-3",
		Who:   runs.Who{UID: 1000 + process%8, User: fmt.Sprintf("user%d", process%8), Name: "python3", Command: monthCommand(process), Unit: "user.slice", Dir: "/srv/models"},
		Start: at, Seen: at, Last: ended, End: runs.Ending{Kind: runs.Exited, At: ended, Code: code}, Observed: 3000.5,
		Processes: []runs.Process{{PID: 100_000 + int(id), StartTicks: id * 1000, Start: at, Name: "python3"}},
		Pools:     d.Pools, Devices: []runs.Device{d},
		Neighbours: []runs.Neighbour{{ID: id ^ 1, UID: 1001, User: "user1", Name: "python3", Devices: []int{process / 2}, Seconds: 2990}}, Left: []runs.Left{},
	}
}
