package shm

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs/proc"
)

// search says which owners and holders to find among all processes of the host.
type search struct {
	pids    map[int]bool // innermost pids of slots without an owner
	holders bool         // processes that are attached without a slot
	regions []*region
}

// addSlots adds the slots without an owner to the search.
func (s *search) addSlots(reg *region) {
	for _, st := range reg.states {
		if st == nil || st.verdict != undecided || len(st.owners) > 0 {
			continue
		}
		if s.pids == nil {
			s.pids = map[int]bool{}
		}
		s.pids[int(st.slot.PID)] = true
		if !slices.Contains(s.regions, reg) {
			s.regions = append(s.regions, reg)
		}
	}
}

// searchPause is the least time between two searches for holders without a
// slot: such a search reads what every process maps.
const searchPause = time.Second

// addHolderSearch adds the processes that are attached without a slot to the
// search, if there may be any: the region counts more attachments than are
// explained (up to layout 3; later an attached process has a slot), or all
// slots are occupied. It does so once per change of members.
func (r *Reader) addHolderSearch(reg *region, s *search) {
	if reg.searched || r.now.Sub(r.lastSearch) < searchPause {
		return
	}
	reg.searched = true
	explained := r.countAttached(reg)
	for _, st := range reg.states {
		if st != nil && len(st.owners) == 0 {
			explained++
		}
	}
	counted := !reg.parsed.Layout.cbIsSum && int64(reg.parsed.Refs) > int64(explained)
	if counted || len(reg.parsed.Slots) == numSlots {
		s.holders = true
		s.regions = append(s.regions, reg)
	}
}

// runSearch scans all processes of the host once, if there is anything to find,
// and matches the slots with their owners. If there is no time for all of them,
// slots without an owner stay undecided until the next sweep.
func (r *Reader) runSearch(s *search) {
	if len(s.regions) == 0 {
		return
	}
	if s.holders {
		r.lastSearch = r.now
	}
	all := r.eachProcess(func(pid int, st *proc.Status) {
		if s.pids[st.Inner(pid)] || s.holders && s.mayHold(st.UID) {
			r.examine(pid, s)
		}
	})
	for _, reg := range s.regions {
		reg.unsearched = !all && s.pids != nil
		r.matchSlots(reg)
	}
}

// mayHold reports whether a process could have opened one of the regions.
func (s *search) mayHold(uid int) bool {
	return uid <= 0 || slices.ContainsFunc(s.regions, func(reg *region) bool {
		return reg.owner == uid || reg.mode&0o066 != 0
	})
}

// scanAll finds regions that no slot and no device user leads to.
func (r *Reader) scanAll() {
	r.lastFull = r.now
	r.eachProcess(func(pid int, _ *proc.Status) { r.examine(pid, nil) })
}

// examine keeps a process if it maps a known region (without s: any), or if its
// mappings may not be read and it could own a slot that s searches for.
func (r *Reader) examine(pid int, s *search) {
	p, err := r.open(pid)
	if err != nil {
		return
	}
	r.readMaps(p)
	wanted := p.mapsErr != nil && s != nil && s.pids[p.InnerPID]
	for _, m := range p.maps.regions {
		wanted = wanted || s == nil || r.regions[m.inode] != nil
	}
	if wanted {
		r.holdProcess(p)
	} else {
		r.processes.Discard(p.Process)
	}
}

// eachProcess visits all processes that are not known and have memory, the
// newest first. It returns false if there was not enough time.
func (r *Reader) eachProcess(visit func(pid int, st *proc.Status)) (all bool) {
	started := time.Now()
	all = true
	err := r.processes.EachStatus(
		func(pid int) bool { return r.procs[pid] == nil },
		func(pid int, st *proc.Status) bool {
			if all = time.Since(started) <= r.opts.SearchTime; all {
				visit(pid, st)
			}
			return all
		})
	return all && err == nil
}
