package api

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// poolBytes is a number of bytes per pool, by name; host memory among them.
type poolBytes struct {
	DRAM    uint64 `json:"dram_bytes"`
	L1      uint64 `json:"l1_bytes"`
	L1Small uint64 `json:"l1_small_bytes"`
	Trace   uint64 `json:"trace_bytes"`
	CB      uint64 `json:"cb_bytes"`
	Kernel  uint64 `json:"kernel_bytes"`
	Host    uint64 `json:"host_bytes"`
}

func pools(b [ledger.NumPools]uint64) poolBytes {
	return poolBytes{b[model.DRAM], b[model.L1], b[model.L1Small], b[model.Trace], b[model.CB], b[model.Kernel], b[ledger.Host]}
}

// reporter is a process in /v1/processes.
type reporter struct {
	PID      int             `json:"pid"`
	Start    uint64          `json:"start_ticks"`
	SentPID  int             `json:"sent_pid"` // what it calls itself
	UID      *int            `json:"uid"`
	Name     *string         `json:"name"`
	Since    time.Time       `json:"since"`
	Last     time.Time       `json:"last"`
	Buffers  int             `json:"buffers"`
	Devices  []reporterUse   `json:"devices"`
	Counters ledger.Counters `json:"counters"`
}

// reporterUse is what a process holds on one device of its own numbering.
type reporterUse struct {
	Device  int32     `json:"device"`
	Buffers uint64    `json:"buffers"`
	Now     poolBytes `json:"now"`
	Peak    poolBytes `json:"peak"`
}

// processes lists who reports allocations.
func (s *Server) processes(w http.ResponseWriter, r *http.Request) {
	v := s.Viewpoint(r)
	answerList(w, map[string]any{"schema": "ttmon.processes/1"}, "processes", func(yield func(reporter) bool) {
		for _, h := range s.opt.Ledger.Processes() {
			if !yield(v.reporter(&h)) {
				return
			}
		}
	})
}

func (v Viewpoint) reporter(h *ledger.Holding) reporter {
	p := reporter{
		PID: h.PID, Start: h.StartTicks, SentPID: h.SentPID, Since: h.Since.UTC(), Last: h.Last.UTC(),
		Buffers: h.Buffers, Devices: []reporterUse{}, Counters: h.Counters,
	}
	hidden := v.Hides(model.Value(h.UID))
	if !hidden {
		p.Name = &h.Name
	}
	if !hidden || v.Level < 2 {
		p.UID = &h.UID
	}
	for i := range h.Devices {
		u := &h.Devices[i]
		p.Devices = append(p.Devices, reporterUse{u.Device, u.Count(), pools(u.Bytes), pools(u.Peak)})
	}
	return p
}

// viewBuffer shows a buffer. Its id can be an address in the process that
// reported it, so only who owns that sees it.
func viewBuffer(b ledger.Buffer, owns bool, now time.Time) apitype.Buffer {
	v := apitype.Buffer{
		Kind: b.Kind, Device: b.Device, Pool: poolName(b.Pool), Size: b.Size, Born: b.Born.UTC(),
		Age: max(now.Sub(b.Born), 0).Round(10 * time.Millisecond).Seconds(),
	}
	if owns {
		v.ID = &b.ID
	}
	return v
}

func poolName(p model.Pool) string {
	if p == ledger.Host {
		return "host"
	}
	return p.String()
}

const (
	defaultBuffers = 1000
	maxBuffers     = 100_000
)

// bufferQuery is what a caller wants of a process's buffers.
type bufferQuery struct {
	Limit  *int   `param:"limit" help:"so many"`
	Device *int   `param:"device" help:"in the process's own numbering"`
	Pool   string `param:"pool" help:"dram, l1, …"`
	Sort   string `param:"sort" help:"size or age"`
	Start  uint64 `param:"start" help:"start_ticks of the process that is meant"`
}

// check refuses what there is not.
func (q *bufferQuery) check() (problem string) {
	known := q.Pool == "" || q.Pool == "host" || slices.ContainsFunc(model.Pools(), func(p model.Pool) bool { return p.String() == q.Pool })
	switch {
	case q.Limit != nil && (*q.Limit < 1 || *q.Limit > maxBuffers):
		return "limit: it is from 1 to " + strconv.Itoa(maxBuffers)
	case !known:
		return "pool: there is no " + strconv.Quote(q.Pool) + "; it is one of dram, l1, l1_small, trace, cb, kernel, host"
	case q.Sort != "" && q.Sort != "size" && q.Sort != "age":
		return "sort: " + strconv.Quote(q.Sort) + " is neither size nor age"
	}
	return ""
}

// buffers lists live buffers of a process: the largest, or the oldest.
func (s *Server) buffers(w http.ResponseWriter, r *http.Request) {
	limit := defaultBuffers
	q := bufferQuery{Limit: &limit}
	if !asked(w, r, &q) {
		return
	}
	if problem := q.check(); problem != "" {
		Fail(w, http.StatusBadRequest, "%s", problem)
		return
	}
	h, status, problem := s.findProcess(r, q.Start)
	if problem != "" {
		Fail(w, status, "%s", problem)
		return
	}
	matching, bytes := 0, uint64(0)
	keep := func(b ledger.Buffer) bool {
		ok := (q.Device == nil || b.Device == int32(*q.Device)) && (q.Pool == "" || poolName(b.Pool) == q.Pool)
		if ok {
			matching++
			bytes += b.Size
		}
		return ok
	}
	list, ok := s.opt.Ledger.Top(h.ProcessID, *q.Limit, q.Sort == "age", keep)
	if !ok {
		Fail(w, http.StatusNotFound, "process %d has just ended", h.PID)
		return
	}
	now, owns := time.Now(), callerOf(r).owns(h.UID)
	place := s.places(h.ProcessID)
	head := map[string]any{
		"schema": "ttmon.buffers/1", "pid": h.PID, "start_ticks": h.StartTicks, "total": matching, "total_bytes": bytes,
	}
	answerList(w, head, "buffers", func(yield func(apitype.Buffer) bool) {
		for _, b := range list {
			v := viewBuffer(b, owns, now)
			place(&v)
			if !yield(v) {
				return
			}
		}
	})
}

// places puts the buffers of a process on the host's chips: a reporter counts
// its devices itself.
func (s *Server) places(id model.ProcessID) func(*apitype.Buffer) {
	known := map[int32]model.ChipPlace{}
	return func(b *apitype.Buffer) {
		at, ok := known[b.Device]
		if !ok && s.opt.Place != nil {
			if at, ok = s.opt.Place(id, int(b.Device)); ok {
				known[b.Device] = at
			}
		}
		if ok {
			b.Index, b.Chip = &at.Device, at.Name
		}
	}
}

// findProcess finds the process of a request: by pid, and by start where two
// have had it.
func (s *Server) findProcess(r *http.Request, start uint64) (h ledger.Holding, status int, problem string) {
	pid, err := strconv.Atoi(r.PathValue("pid"))
	if err != nil {
		return h, http.StatusBadRequest, strconv.Quote(r.PathValue("pid")) + " is not a pid"
	}
	var found []ledger.Holding
	for _, h := range s.opt.Ledger.WithPID(pid) {
		if start == 0 || h.StartTicks == start {
			found = append(found, h)
		}
	}
	if len(found) == 0 {
		return h, http.StatusNotFound, "no process " + strconv.Itoa(pid) + " reports allocations"
	}
	return slices.MaxFunc(found, func(a, b ledger.Holding) int { return cmp.Compare(a.StartTicks, b.StartTicks) }), 0, ""
}

// leak is an entry of /v1/leaks.
type leak struct {
	Seq     uint64         `json:"seq"`
	PID     int            `json:"pid"`
	Start   uint64         `json:"start_ticks"`
	UID     *int           `json:"uid"`
	Name    *string        `json:"name"`
	Died    time.Time      `json:"died"`
	Reason  string         `json:"reason"`
	Buffers int            `json:"buffers"`
	Bytes   uint64         `json:"bytes"` // on devices
	Pools   poolBytes      `json:"pools"`
	Devices []int32        `json:"devices"`
	Largest apitype.Buffer `json:"largest"`
	Oldest  time.Time      `json:"oldest"`
}

// leaks lists what dead processes had not freed, newest first.
func (s *Server) leaks(w http.ResponseWriter, r *http.Request) {
	v, who := s.Viewpoint(r), callerOf(r)
	list := []leak{}
	for _, f := range s.opt.Ledger.Leaks() {
		l := leak{
			Seq: f.Seq, PID: f.PID, Start: f.StartTicks, Died: f.Died.UTC(), Reason: f.Reason, Buffers: f.Count,
			Bytes: f.Total(), Pools: pools(f.Bytes), Devices: f.Devices,
			Largest: viewBuffer(f.Largest, who.owns(f.UID), f.Died), Oldest: f.Oldest.UTC(),
		}
		if hidden := v.Hides(model.Value(f.UID)); !hidden {
			l.Name, l.UID = &f.Name, &f.UID
		} else if v.Level < 2 {
			l.UID = &f.UID
		}
		list = append(list, l)
	}
	Answer(w, http.StatusOK, map[string]any{"schema": "ttmon.leaks/1", "leaks": list})
}
