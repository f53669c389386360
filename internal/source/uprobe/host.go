package uprobe

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/metalabi"
)

// Where a process enqueues work and waits for it.
const (
	hostEnqueue    = kind(watchHostSiteHOST_ENQUEUE)
	hostReplay     = kind(watchHostSiteHOST_REPLAY)
	hostReplayList = kind(watchHostSiteHOST_REPLAY_LIST)
	hostFinish     = kind(watchHostSiteHOST_FINISH)
	hostEvent      = kind(watchHostSiteHOST_EVENT)
	hostQueue      = kind(watchHostSiteHOST_QUEUE)
	hostQueueGone  = kind(watchHostSiteHOST_QUEUE_GONE)

	hostLeave = kind(watchHostSiteHOST_LEAVE)
	hostThrow = kind(watchHostSiteHOST_THROW)
)

// ofHost reports whether a site is one of those.
func (k kind) ofHost() bool { return k >= hostEnqueue }

// hostProbes are the probes of a function of the host's side: at its beginning
// and, of one that waits, where it ends. Without its ends a wait would last for
// ever, so it is not watched then.
func (f *elfFile) hostProbes(s *symbol, want *function) (probes []probe) {
	begin, err := f.site(s.address, want.prefix)
	if err != nil {
		return nil
	}
	at := func(site kind, offset uint64) {
		probes = append(probes, probe{site: site, offset: offset, need: metalabi.OnDemand})
	}
	if want.site == hostFinish || want.site == hostEvent {
		e, ok := f.exits(s)
		if !ok {
			return nil
		}
		for _, offset := range e.returns {
			at(want.site|hostLeave, offset)
		}
		for _, offset := range e.leaves {
			at(want.site|hostThrow, offset)
		}
	}
	at(want.site, begin)
	return probes
}

// seesHost reports whether a library has what it takes to know what its processes
// enqueue and wait for.
func (l *library) seesHost() bool {
	has := func(site kind) bool {
		return slices.ContainsFunc(l.probes, func(p probe) bool { return p.site == site })
	}
	return has(hostEnqueue) && has(hostFinish)
}

// forgetHosts begins the account of what the processes of a library enqueue and
// wait for again: a call or a return may have been missed. With mu.
func (s *Source) forgetHosts(l *library) {
	l.hostArmed = sinceBoot()
	var number uint32
	var row watchHost
	var gone []uint32
	for rows := s.kernel.Hosts.Iterate(); rows.Next(&number, &row); {
		if l.pids[int(row.Pid)] {
			gone = append(gone, number)
		}
	}
	for _, number := range gone {
		_ = s.kernel.Hosts.Delete(number)
	}
}

// hostRows are what the kernel has counted, by pid in our namespace.
func (s *Source) hostRows() map[uint32]*watchHost {
	if !s.o.Waits {
		return nil
	}
	all := map[uint32]*watchHost{}
	var number uint32
	var row watchHost
	for rows := s.kernel.Hosts.Iterate(); rows.Next(&number, &row); {
		x := row
		all[row.Pid] = &x
	}
	return all
}

// sweepHosts takes the probes out of processes that hit them too often. With mu.
func (s *Source) sweepHosts(rows map[uint32]*watchHost, now time.Time) {
	for pid, row := range rows {
		p := s.accounts.processes[pid]
		if p == nil || p.fast[groupHost] {
			continue
		}
		rate := s.rate(rateKey{pid, groupHost}, row.Hits, now)
		if rate <= s.o.Limit {
			continue
		}
		p.fast[groupHost] = true
		s.log.Warn("process calls too often for uprobe.waits; probes removed", "pid", pid, "hits_per_second", int(rate), "limit", s.o.Limit)
		s.leave(pid, groupHost)
	}
}

// claimHost adds what a process enqueued and waits for, or returns why that is
// not known. With mu.
func (s *Source) claimHost(set *claim.Set, p *process, row *watchHost, boot int64) model.HostCause {
	switch {
	case !s.o.Waits:
		return model.HostNotAsked
	case p.fast[groupHost]:
		return model.HostTooFast
	}
	var l *library
	for _, of := range s.known[p.PID] {
		if l = s.libraries[of]; l != nil {
			break
		}
	}
	switch {
	case l == nil:
		return model.HostNotWatched
	case !l.seesHost():
		return model.HostNoSymbols
	case l.hostArmed == 0: // they were taken out, or could not be set
		return model.HostNotWatched
	}
	if row == nil {
		row = &watchHost{}
	}
	at := func(ns uint64) time.Time {
		if ns == 0 {
			return time.Time{}
		}
		return time.Unix(0, boot+int64(ns))
	}
	h := model.HostWork{
		Enqueued: row.Enqueued, Replayed: row.Replayed,
		LastEnqueue: at(row.LastEnqueue), LastFinish: at(row.LastFinish),
	}
	if p.work != nil {
		h.Queues, h.SubDevices = p.work.Queues, p.work.SubDevices
	}
	if !s.sawAll(p, l) {
		// Something may have been enqueued before, and may still run.
		h.LastFinish = time.Time{}
		h.LastEnqueue = at(max(row.LastEnqueue, l.hostArmed))
	}
	h.WaitingSince, h.WaitingFor = longestWait(row, at)
	set.Hosts = append(set.Hosts, claim.Host{Process: model.ProcessID{PID: p.PID, StartTicks: p.Start}, HostWork: h})
	return ""
}

// sawAll reports whether the probes were in the library before the process could
// have called it. With mu.
func (s *Source) sawAll(p *process, l *library) bool {
	return l.hostArmed <= nanoseconds(p.Start) || l.hostArmed <= l.armed && !p.Late
}

// longestWait is the wait of a process that has lasted longest.
func longestWait(row *watchHost, at func(uint64) time.Time) (since time.Time, kind model.WaitKind) {
	least := uint64(0)
	for i := range row.Wait {
		w := &row.Wait[i]
		if w.Since == 0 || w.Thread == 0 || least != 0 && w.Since >= least {
			continue
		}
		least, kind = w.Since, model.WaitsForFinish
		if w.Kind == uint32(hostEvent) {
			kind = model.WaitsForEvent
		}
	}
	return at(least), kind
}
