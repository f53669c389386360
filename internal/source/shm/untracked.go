package shm

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// describe makes the published form of a process.
func (r *Reader) describe(p *process) *Process {
	out := &Process{
		PID: p.pid, StartTicks: p.start, StartTime: p.startTime(r.boot).Round(time.Millisecond),
		NSPID: p.nsPID, UID: p.uid, Name: p.comm, User: p.user,
		Tracking: model.TrackOK, Release: r.releases.of(p),
	}
	if p.mapsErr != nil {
		out.Release = model.Missing[string](hostfs.Status(p.mapsErr), "what it maps may not be looked at")
	}
	version, holds := r.newestLayout(p)
	if holds {
		if note := threadNote(out.Release, version); note != "" {
			out.Notes = append(out.Notes, note)
		}
		return out
	}
	out.Tracking, out.Reason = r.untracked(p, out.Release)
	out.foreign = p.mapsErr == nil && len(p.maps.regions) == 0 && p.maps.lib.path == ""
	return out
}

// newestLayout is the highest layout version among the regions that p writes,
// and whether it writes any. Version 0 is a region that could not be read.
func (r *Reader) newestLayout(p *process) (version uint32, holds bool) {
	for _, reg := range r.regions {
		owner := mapsIt(p, reg)
		for _, st := range reg.states {
			owner = owner || st != nil && slices.Contains(st.owners, p)
		}
		if owner {
			holds = true
			if reg.parsed != nil {
				version = max(version, reg.parsed.Layout.Version)
			}
		}
	}
	return version, holds
}

const disableVariable = "TT_METAL_SHM_TRACKING_DISABLED"

// untracked says why nothing is known about the memory of a process that uses
// a device: it writes no region that we know of.
func (r *Reader) untracked(p *process, release model.Reading[string]) (model.Tracking, string) {
	if p.mapsErr != nil {
		if denied(p.mapsErr) {
			return model.TrackDenied, fmt.Sprintf("process %d is uid %d's: run as that user or as root, or start ttmond", p.pid, p.uid)
		}
		return model.TrackAbsent, fmt.Sprintf("process %d does not let its memory be looked at: %v", p.pid, p.mapsErr)
	}
	if len(p.maps.regions) > 0 {
		return model.TrackAbsent, "it accounts in a region that cannot be reached from here"
	}
	if p.maps.lib.path == "" {
		return model.TrackAbsent, "it is not a tt-metal program: it maps no libtt_metal.so"
	}
	v, known := release.Get()
	if first, ok := atLeast(v, firstMajor, firstMinor); known && ok && !first {
		return model.TrackAbsent, fmt.Sprintf("ttnn %s keeps no statistics; releases from %d.%d.0 on do", v, firstMajor, firstMinor)
	}
	if r.environ(p, disableVariable) == '1' {
		return model.TrackAbsent, "it was started with " + disableVariable + "=1"
	}
	if reason := r.shutOut(p, release); reason != "" {
		return model.TrackAbsent, reason
	}
	return model.TrackAbsent, "it has attached to no region: it has not opened its chips yet, or has closed them"
}

// shutOut says which region in p's reach it could not attach to.
func (r *Reader) shutOut(p *process, release model.Reading[string]) string {
	for _, reg := range slices.SortedFunc(maps.Values(r.regions), byID) {
		if reg.deleted || !r.inReach(p, reg) {
			continue
		}
		if p.uid > 0 && reg.owner != p.uid && reg.mode&0o006 != 0o006 {
			return fmt.Sprintf("%s belongs to uid %d, so tt-metal of uid %d cannot account in it: have it removed (ttmon stale) or made by root with mode 0666", reg.path, reg.owner, p.uid)
		}
		if reg.parsed != nil && reg.parsed.Layout.Version != 3 && knownV3(release) {
			return fmt.Sprintf("%s has layout version %d, which its release cannot use", reg.path, reg.parsed.Layout.Version)
		}
	}
	return ""
}

func byID(a, b *region) int { return cmp.Compare(a.id, b.id) }

// inReach tells whether a region lies in the /dev/shm of p.
func (r *Reader) inReach(p *process, reg *region) bool {
	d := r.dirs[p.shm]
	if d == nil && r.host != nil && p.shm == r.host.inode {
		d = r.host
	}
	if d == nil {
		return false
	}
	for _, f := range d.files {
		if inodeOf(&f.st) == reg.inode {
			return true
		}
	}
	return false
}

// environ returns the first character of a variable in the environment that p
// was started with; 0 if it has none or may not be looked at.
func (r *Reader) environ(p *process, name string) (first byte) {
	var value byte
	err := r.guard.look(p, func(dir hostfs.Dir) {
		buf := make([]byte, 128<<10)
		n, _ := dir.Read("environ", buf)
		value = firstOf(buf[:n], name)
	})
	if err != nil {
		return 0
	}
	return value
}

// firstOf finds NAME=v… in a NUL-separated environment and returns v.
func firstOf(environ []byte, name string) byte {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if v, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok && len(v) > 0 {
			return v[0]
		}
	}
	return 0
}
