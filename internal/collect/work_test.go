package collect

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

var workStart = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// workHost is a host with one n300, of whose chips process 7 uses both.
type workHost struct {
	work work
	now  time.Time
	snap *model.Snapshot
	// telemetry is what was read of the chip's own memory.
	telemetry model.Telemetry
}

func (h *workHost) sweep(after time.Duration, sets ...claim.Set) *model.Snapshot {
	if h.now.IsZero() {
		h.now = workStart
	}
	h.now = h.now.Add(after)
	s := &model.Snapshot{
		Time: h.now,
		Devices: []model.Device{{
			Index: 0, BusID: "0000:01:00.0", Arch: model.Wormhole, State: model.StateOK, Telemetry: h.telemetry,
			Chips: []model.Chip{{ID: model.Value(uint64(100)), Name: "L"}, {ID: model.Value(uint64(101)), Name: "R", Remote: true}},
		}},
	}
	ids := map[model.ProcessID]bool{}
	for i := range sets {
		for k := range sets[i].Work {
			w := &sets[i].Work[k]
			if w.At.IsZero() {
				w.At = h.now
			}
			ids[w.Process] = true
		}
	}
	for id := range ids {
		s.Processes = append(s.Processes, model.Process{
			PID: id.PID, StartTicks: id.StartTicks, State: model.Running,
			Devices: []model.DeviceUse{{Device: 0, OpenFDs: model.Value(1)}},
		})
	}
	j := workJoin{
		work: &h.work, snap: s, sets: sets,
		place: func(chip uint64) (chipAt, bool) { return chipAt{0, int(chip - 100)}, chip == 100 || chip == 101 },
		may:   func(p *model.Process, _ *model.Device) bool { return p.PID != 666 },
		idle:  func(int) bool { return len(ids) == 0 },
		iommu: func(*model.Device) bool { return true },
	}
	j.run()
	h.snap = s
	return s
}

var worker = model.ProcessID{PID: 7, StartTicks: 70}

// reported is what process 7 says of chip L.
func (h *workHost) reported(busy time.Duration, programs uint64, change func(*claim.Work)) claim.Set {
	w := claim.Work{
		Process: worker, Chip: 100, Reports: true, Lossless: true, Queues: 1, Busy: busy, Programs: programs,
		Since: workStart.Add(-time.Hour), LastRecord: h.now.Add(time.Second), Longest: time.Millisecond,
	}
	if change != nil {
		change(&w)
	}
	return claim.Set{Source: model.FromTrack, Work: []claim.Work{w}, Listens: []claim.Listens{{Process: worker}}}
}

// settled adds that the host has waited for all it enqueued.
func settled(set claim.Set) claim.Set {
	set.Hosts = []claim.Host{{Process: worker, HostWork: model.HostWork{Enqueued: 10, LastEnqueue: workStart, LastFinish: workStart}}}
	return set
}

func TestBusy(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second func(*workHost) claim.Set
		ratio         float64
		bound         model.Bound
		cause         model.WorkCause // of chip L
		missing       bool
	}{
		{
			"70 %", func(h *workHost) claim.Set { return h.reported(0, 0, nil) },
			func(h *workHost) claim.Set { return h.reported(700*time.Millisecond, 1000, nil) },
			0.7, model.Exact, "", false,
		},
		{
			"all the time", func(h *workHost) claim.Set { return h.reported(0, 0, nil) },
			func(h *workHost) claim.Set { return h.reported(time.Second, 1000, nil) },
			1, model.Exact, "", false,
		},
		{
			"idle, and it is known", func(h *workHost) claim.Set { return settled(h.reported(time.Second, 5, nil)) },
			func(h *workHost) claim.Set {
				return settled(h.reported(time.Second, 5, func(w *claim.Work) { w.LastRecord = workStart }))
			},
			0, model.Exact, "", false,
		},
		{
			"silent: idle, or a long program", func(h *workHost) claim.Set { return h.reported(time.Second, 5, nil) },
			func(h *workHost) claim.Set {
				return h.reported(time.Second, 5, func(w *claim.Work) { w.LastRecord = workStart })
			},
			0, 0, model.WorkSilent, true,
		},
		{
			"a release that loses records", func(h *workHost) claim.Set { return h.reported(0, 0, nil) },
			func(h *workHost) claim.Set {
				return h.reported(500*time.Millisecond, 9, func(w *claim.Work) { w.Lossless = false })
			},
			0.5, model.AtLeast, model.WorkLossy, false,
		},
		{
			"how many command queues is not known", func(h *workHost) claim.Set { return h.reported(0, 0, nil) },
			func(h *workHost) claim.Set {
				return h.reported(500*time.Millisecond, 9, func(w *claim.Work) { w.Queues = 0 })
			},
			0.5, model.AtLeast, model.WorkQueues, false,
		},
		{
			"a second command queue", func(h *workHost) claim.Set { return settled(h.reported(0, 0, nil)) },
			func(h *workHost) claim.Set {
				set := settled(h.reported(500*time.Millisecond, 9, nil))
				set.Work[0].Queues = 2
				return set
			},
			0.5, model.AtLeast, model.WorkQueues, false,
		},
		{
			"idle, as far as one of two command queues tells", func(h *workHost) claim.Set { return settled(h.reported(time.Second, 5, nil)) },
			func(h *workHost) claim.Set {
				set := settled(h.reported(time.Second, 5, func(w *claim.Work) { w.LastRecord = workStart }))
				set.Work[0].Queues = 2
				return set
			},
			0, 0, model.WorkQueues, true,
		},
		{
			"a device that is divided", func(h *workHost) claim.Set { return settled(h.reported(0, 0, nil)) },
			func(h *workHost) claim.Set {
				set := settled(h.reported(500*time.Millisecond, 9, nil))
				set.Work[0].SubDevices = 2
				return set
			},
			0.5, model.AtLeast, model.WorkSubDevices, false,
		},
		{
			"a program may be running", func(h *workHost) claim.Set { return h.reported(0, 0, nil) },
			func(h *workHost) claim.Set {
				return h.reported(500*time.Millisecond, 9, func(w *claim.Work) { w.LastRecord = h.now.Add(500 * time.Millisecond) })
			},
			0.5, model.Unsure, model.WorkUnreported, false,
		},
		{
			"programs without an id", func(h *workHost) claim.Set { return h.reported(0, 0, nil) },
			func(h *workHost) claim.Set {
				return h.reported(500*time.Millisecond, 9, func(w *claim.Work) { w.Unprofiled = 3 })
			},
			0.5, model.AtLeast, model.WorkUnprofiled, false,
		},
		{
			"records that ttmond missed", func(h *workHost) claim.Set { return h.reported(0, 0, nil) },
			func(h *workHost) claim.Set {
				return h.reported(500*time.Millisecond, 9, func(w *claim.Work) { w.Lost = 3 })
			},
			0.5, model.AtLeast, model.WorkRecordsLost, false,
		},
		{
			"more than has passed", func(h *workHost) claim.Set { return h.reported(0, 0, nil) },
			func(h *workHost) claim.Set { return h.reported(time.Hour, 9, nil) },
			1, model.Unsure, model.WorkTooMuch, false,
		},
		{
			"a program of 30 s that has just ended",
			func(h *workHost) claim.Set {
				return h.reported(0, 1, func(w *claim.Work) { w.LastRecord, w.LastEnd = workStart.Add(-30*time.Second), time.Hour })
			},
			func(h *workHost) claim.Set {
				return h.reported(31*time.Second, 2, func(w *claim.Work) { w.LastEnd = time.Hour + 31*time.Second })
			},
			0.36, model.AtLeast, model.WorkUnreported, false,
		},
		{
			"a layout that is not known", func(h *workHost) claim.Set { return h.reported(0, 0, nil) },
			func(h *workHost) claim.Set { return h.reported(0, 0, func(w *claim.Work) { w.Unreadable = true }) },
			0, 0, model.WorkLayout, true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &workHost{now: workStart}
			h.sweep(0, c.first(h))
			h.sweep(time.Second, c.second(h))
			l := h.snap.Devices[0].Chips[0].Work
			if l.Busy.Known() == c.missing || l.Cause != c.cause {
				t.Fatalf("%+v", l)
			}
			if !c.missing && (l.Busy.V < c.ratio-1e-9 || l.Busy.V > c.ratio+1e-9 || l.Bound != c.bound) {
				t.Errorf("%+v, want %v %v", l, c.bound, c.ratio)
			}
			if r := h.snap.Devices[0].Chips[1].Work; r.Busy.Known() || r.Cause != model.WorkRemoteChip {
				t.Errorf("chip R: %+v", r)
			}
			if d := h.snap.Devices[0].Work; d.Busy.Known() && (d.Bound == model.Exact || d.Busy.V == 0) {
				t.Errorf("the board, of whose other chip nothing is known: %+v", d)
			}
		})
	}
}

// TestForgedWork: a process has no say about chips that it does not have open,
// and no totals.
func TestForgedWork(t *testing.T) {
	h := &workHost{now: workStart}
	forge := func(busy time.Duration) claim.Set {
		set := h.reported(busy, 1, func(w *claim.Work) { w.Process = model.ProcessID{PID: 666} })
		set.Listens = nil
		return set
	}
	h.sweep(0, forge(0))
	h.sweep(time.Second, forge(time.Second))
	if w := h.snap.Devices[0].Chips[0].Work; w.Busy.Known() || w.BusyTime.Known() {
		t.Errorf("%+v", w)
	}
}

// TestTwoWitnesses: of two sources that count the same programs one is believed,
// and they are never added.
func TestTwoWitnesses(t *testing.T) {
	outside := func(h *workHost, busy time.Duration, change func(*claim.Work)) claim.Set {
		set := h.reported(busy, 9, change)
		set.Source = model.FromUprobe
		return set
	}
	unreadable := func(w *claim.Work) { w.Unreadable = true }
	for _, c := range []struct {
		name   string
		inside func(*claim.Work) // change of what libttmon says
		lost   uint64            // pages that ttmond's probe missed
		source model.Source
		busy   float64
		bound  model.Bound
	}{
		{"libttmon saw all", nil, 7, model.FromTrack, 0.5, model.Exact},
		{"libttmon cannot read its records", unreadable, 0, model.FromUprobe, 0.4, model.Exact},
		{"and the probe has missed some", unreadable, 7, model.FromUprobe, 0.4, model.AtLeast},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, first := range []bool{false, true} {
				h := &workHost{now: workStart}
				sweep := func(after, in, out time.Duration, lost uint64) {
					sets := []claim.Set{h.reported(in, 9, c.inside), outside(h, out, func(w *claim.Work) { w.Lost = lost })}
					if first {
						sets[0], sets[1] = sets[1], sets[0]
					}
					h.sweep(after, sets...)
				}
				sweep(0, 0, 0, 0)
				sweep(time.Second, 500*time.Millisecond, 400*time.Millisecond, c.lost)
				w := h.snap.Processes[0].Work.Chips
				if len(w) != 1 || w[0].Source != c.source || w[0].Work.Busy.V != c.busy || w[0].Work.Bound != c.bound {
					t.Errorf("%+v", w)
				}
			}
		})
	}
}

// TestDeaf: a chip whose programs are not observed has the reason.
func TestDeaf(t *testing.T) {
	for _, why := range []model.WorkCause{model.WorkTooFast, model.WorkNoSymbols, model.WorkWhichChip, model.WorkSilent} {
		h := &workHost{now: workStart}
		other := claim.Work{Process: worker, Chip: 999} // makes the process known
		h.sweep(0, claim.Set{Source: model.FromUprobe, Work: []claim.Work{other}, Listens: []claim.Listens{{Process: worker, Why: why}}})
		if w := h.snap.Devices[0].Chips[0].Work; w.Busy.Known() || w.Cause != why {
			t.Errorf("%+v, want %s", w, why)
		}
	}
}

// TestWorkTotals: counters never fall, whatever processes come, go and say.
func TestWorkTotals(t *testing.T) {
	h := &workHost{now: workStart}
	h.sweep(0, h.reported(10*time.Second, 100, nil))
	h.sweep(time.Second, h.reported(10*time.Second+500*time.Millisecond, 150, nil))
	h.sweep(time.Second)
	h.sweep(time.Second, h.reported(time.Second/4, 7, func(w *claim.Work) { w.Since = h.now.Add(100 * time.Millisecond) }))
	h.sweep(time.Second, h.reported(100*time.Hour, 8, nil))
	w := h.snap.Devices[0].Chips[0].Work
	if w.BusyTime.V > uint64(2*time.Second) || w.BusyTime.V < uint64(1700*time.Millisecond) || w.ProgramSum.V != 58 {
		t.Errorf("%v ns, %d programs", w.BusyTime.V, w.ProgramSum.V)
	}
	h.sweep(time.Second)
	if got := h.snap.Devices[0].Chips[0].Work; got.BusyTime.V != w.BusyTime.V || !got.Busy.Known() || got.Busy.V != 0 || got.Bound != model.Exact {
		t.Errorf("after its end: %+v", got)
	}
}

// TestTotalsBound: totals are at least that much from the first program on that was not
// reported, also when the window in which it ran is over; of a chip of which nothing was
// ever reported there are none.
func TestTotalsBound(t *testing.T) {
	other := model.ProcessID{PID: 8, StartTicks: 80}
	silent := func(set claim.Set) claim.Set { // process 8 has the device open, too
		set.Work = append(set.Work, claim.Work{Process: other, Chip: 999})
		return set
	}
	for _, c := range []struct {
		name        string
		second      func(*workHost) claim.Set
		then, after model.Bound // with the second sample, and when all have ended
	}{
		{"all was reported", func(h *workHost) claim.Set { return h.reported(time.Second/2, 50, nil) }, model.Exact, model.Exact},
		{"records were lost", func(h *workHost) claim.Set {
			return h.reported(time.Second/2, 50, func(w *claim.Work) { w.Lost = 1 })
		}, model.AtLeast, model.AtLeast},
		{"another process reports nothing", func(h *workHost) claim.Set { return silent(h.reported(time.Second/2, 50, nil)) }, model.AtLeast, model.AtLeast},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &workHost{now: workStart}
			h.sweep(0, h.reported(0, 0, nil))
			h.sweep(time.Second, c.second(h))
			if got := h.snap.Devices[0].Chips[0].Work; got.TotalBound != c.then || got.ProgramSum.V != 50 {
				t.Errorf("%+v, want %v", got, c.then)
			}
			h.sweep(time.Second)
			if got := h.snap.Devices[0].Chips[0].Work; got.Bound != model.Exact || got.TotalBound != c.after || got.ProgramSum.V != 50 {
				t.Errorf("when all have ended %+v, want %v", got, c.after)
			}
			if got := h.snap.Devices[0].Work; got.TotalBound != model.AtLeast || got.ProgramSum.V != 50 {
				t.Errorf("the board, of whose other chip nothing was reported: %+v", got)
			}
			if got := h.snap.Devices[0].Chips[1].Work; got.ProgramSum.Known() || got.BusyTime.Known() || !got.Busy.Known() {
				t.Errorf("the other chip: %+v", got)
			}
		})
	}
	t.Run("it reports later", func(t *testing.T) {
		h := &workHost{now: workStart}
		h.sweep(0, h.reported(0, 0, func(w *claim.Work) { w.Chip = 999 }))
		h.sweep(time.Second, h.reported(0, 0, nil))
		h.sweep(time.Second, h.reported(time.Second/2, 50, nil))
		if got := h.snap.Devices[0].Chips[0].Work; got.TotalBound != model.Exact || got.ProgramSum.V != 50 {
			t.Errorf("%+v", got)
		}
	})
}

func TestOperations(t *testing.T) {
	h := &workHost{now: workStart}
	set := func(n uint64) claim.Set {
		return h.reported(time.Duration(n)*time.Millisecond, n, func(w *claim.Work) {
			for i := range 40 {
				w.Ops = append(w.Ops, claim.Op{Name: string(rune('a' + i)), Calls: n, Time: time.Duration(n*uint64(i)) * 1000, Longest: 5})
			}
		})
	}
	h.sweep(0, set(100))
	h.sweep(time.Second, set(300))
	ops := h.snap.Processes[0].Work.Chips[0].Operations
	if len(ops) != maxOperations || ops[0].Name != string(rune('a'+39)) || ops[0].Rate.V != 200 || ops[0].Share.V < 0.00779 || ops[0].Share.V > 0.00781 {
		t.Fatalf("%d, first %+v", len(ops), ops[0])
	}
	if rest := ops[len(ops)-1]; rest.Others != 9 || rest.Calls != 2700 || rest.Name != "" {
		t.Errorf("the rest: %+v", rest)
	}
}

func TestNoProfiler(t *testing.T) {
	for release, want := range map[string]bool{"0.70.1": true, "0.65.0": true, "0.71.2": false, "0.81.1": false, "": false, "1.2.0": false, "main": false} {
		t.Run(release, func(t *testing.T) {
			if hasNoProfiler(release) != want {
				t.Errorf("%q: %v", release, !want)
			}
		})
	}
}

// TestHostWitness: what libttmon says of a process's calls goes before what
// ttmond's probes say, in whatever order they speak; an idle chip is known by
// either. Where neither sees the calls there is the reason.
func TestHostWitness(t *testing.T) {
	probe := func(h *workHost, host *model.HostWork, why model.HostCause) claim.Set {
		set := h.reported(0, 10, func(w *claim.Work) { w.LastRecord = workStart })
		set.Source = model.FromUprobe
		set.Listens[0].Host = why
		if host != nil {
			set.Hosts = []claim.Host{{Process: worker, HostWork: *host}}
		}
		return set
	}
	idle := model.HostWork{Enqueued: 10, LastEnqueue: workStart, LastFinish: workStart}
	waiting := model.HostWork{Enqueued: 11, LastEnqueue: workStart, LastFinish: workStart, WaitingSince: workStart, WaitingFor: model.WaitsForFinish}
	inside := func(h *workHost) claim.Set {
		return claim.Set{Source: model.FromTrack, Hosts: []claim.Host{{Process: worker, HostWork: model.HostWork{Enqueued: 99}}}}
	}
	for _, c := range []struct {
		name     string
		sets     func(*workHost) []claim.Set
		enqueued uint64
		watched  bool
		cause    model.HostCause
		idle     bool // busy is 0 %, for certain
	}{
		{"the probe alone, idle", func(h *workHost) []claim.Set { return []claim.Set{probe(h, &idle, "")} }, 10, true, "", true},
		{"the probe alone, waiting", func(h *workHost) []claim.Set { return []claim.Set{probe(h, &waiting, "")} }, 11, true, "", false},
		{"both", func(h *workHost) []claim.Set { return []claim.Set{probe(h, &idle, ""), inside(h)} }, 99, true, "", false},
		{"both, the other way round", func(h *workHost) []claim.Set { return []claim.Set{inside(h), probe(h, &idle, "")} }, 99, true, "", false},
		{"the probes are off", func(h *workHost) []claim.Set { return []claim.Set{probe(h, nil, model.HostNotAsked)} }, 0, false, model.HostNotAsked, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &workHost{now: workStart}
			h.sweep(time.Second, c.sets(h)...)
			s := h.sweep(time.Second, c.sets(h)...)
			w := s.Processes[0].Work
			if w.Watched != c.watched || w.Host.Enqueued != c.enqueued || w.HostCause != c.cause {
				t.Errorf("%+v", w)
			}
			busy, known := w.Chips[0].Work.Busy.Get()
			if got := known && busy == 0 && w.Chips[0].Work.Bound == model.Exact; got != c.idle {
				t.Errorf("idle: %v: %+v", got, w.Chips[0].Work)
			}
		})
	}
}

// TestGaps: what makes busy a lower bound makes gaps doubtful, for good.
func TestGaps(t *testing.T) {
	end := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		change func(*claim.Work)
		want   model.GapCause
		listed int
	}{
		"certain":                     {func(*claim.Work) {}, "", 2},
		"none":                        {func(w *claim.Work) { w.Gaps, w.Lossless = nil, false }, "", 0},
		"an older library":            {func(w *claim.Work) { w.Gaps, w.GapsKept = nil, false }, model.GapsNotKept, 0},
		"records lost":                {func(w *claim.Work) { w.Lost = 1 }, model.GapsRecordsLost, 2},
		"a lossy release":             {func(w *claim.Work) { w.Lossless = false }, model.GapsLossy, 2},
		"two queues":                  {func(w *claim.Work) { w.Queues = 2 }, model.GapsQueues, 2},
		"queues not seen":             {func(w *claim.Work) { w.Queues = 0 }, model.GapsQueues, 2},
		"sub-devices":                 {func(w *claim.Work) { w.SubDevices = 2 }, model.GapsSubDevices, 2},
		"no ids":                      {func(w *claim.Work) { w.Unprofiled = 1 }, model.GapsUnprofiled, 2},
		"more than there is room for": {func(w *claim.Work) { w.Gaps = make([]claim.Gap, 100) }, "", model.MaxGaps},
	} {
		t.Run(name, func(t *testing.T) {
			w := claim.Work{Programs: 3, Lossless: true, Queues: 1, GapsKept: true, Gaps: []claim.Gap{{Length: 3 * time.Second, End: end, After: "matmul"}, {Length: time.Second}}}
			c.change(&w)
			list, cause := gaps(&w)
			if cause != c.want || len(list) != c.listed {
				t.Errorf("%d gaps, %q; want %d, %q", len(list), cause, c.listed, c.want)
			}
			if c.listed == 2 && list[0] != (model.Gap{Length: 3e9, End: end, After: "matmul"}) {
				t.Errorf("%+v", list[0])
			}
		})
	}
	for _, c := range model.GapCauses() {
		if c.Why() == "" || c.Why() == string(c) {
			t.Errorf("%q has no sentence", c)
		}
	}
}
