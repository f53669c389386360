package shm

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// publishProcess returns the published form of a process.
func (r *Reader) publishProcess(p *process) *Process {
	out := &Process{
		PID: p.PID, StartTicks: p.StartTicks, StartTime: p.startTime(r.boot).Round(time.Millisecond),
		NSPID: p.InnerPID, UID: p.UID, Name: p.Name, User: p.user, Release: r.releases.releaseOf(p),
	}
	switch {
	case p.mapsErr != nil:
		out.Release = model.Missing[string](hostfs.Status(p.mapsErr), "its mappings may not be read")
		out.Type = out.Release
	case p.maps.lib.path == "":
		out.Type = model.Value(model.TypeOther)
	case out.Release.Known():
		out.Type = model.Value(model.TypeTTNN)
	default:
		out.Type = model.Value(model.TypeMetal)
	}
	out.Accounts = r.accounts(p)
	if !out.Accounts {
		out.Silent = r.whyUntracked(p, out.Release)
		out.Silent.PID = p.PID
	}
	if out.Accounts || out.Silent.Kind == model.NotAttached {
		out.ShutOut = r.shutOut(p, out.Release)
	}
	return out
}

// accounts reports whether p writes a region.
func (r *Reader) accounts(p *process) bool {
	for _, reg := range r.regions {
		if mapsRegion(p, reg) || reg.ownedBy(p) {
			return true
		}
	}
	return false
}

const disableVariable = "TT_METAL_SHM_TRACKING_DISABLED"

// whyUntracked returns why nothing is known about the memory of a process that
// uses a device: it writes no known region.
func (r *Reader) whyUntracked(p *process, release model.Reading[string]) model.Doubt {
	switch v, known := release.Get(); {
	case p.mapsErr != nil && denied(p.mapsErr):
		return model.Doubt{Kind: model.ProcessDenied, UID: p.UID}
	case p.mapsErr != nil:
		return model.Doubt{Kind: model.ProcessUnreadable, Detail: p.mapsErr.Error()}
	case len(p.maps.regions) > 0:
		return model.Doubt{Kind: model.RegionUnreachable}
	case p.maps.lib.path == "" && p.maps.drives:
		return model.Doubt{Kind: model.LibraryUnseen}
	case p.maps.lib.path == "":
		return model.Doubt{Kind: model.NotTTMetal}
	case known && before(v, firstMajor, firstMinor):
		return model.Doubt{Kind: model.OldRelease, Release: v}
	case r.trackingDisabled(p):
		return model.Doubt{Kind: model.TrackingDisabled}
	}
	return model.Doubt{Kind: model.NotAttached}
}

// shutOut lists the regions in p's /dev/shm that it cannot attach to, whether
// or not it uses their chips.
func (r *Reader) shutOut(p *process, release model.Reading[string]) (list []model.Doubt) {
	for _, reg := range slices.SortedFunc(maps.Values(r.regions), byID) {
		if reg.deleted || mapsRegion(p, reg) || !r.inReach(p, reg) {
			continue
		}
		if p.UID > 0 && reg.owner != p.UID && reg.mode&0o006 != 0o006 {
			list = append(list, model.Doubt{Kind: model.ShutOut, PID: p.PID, Region: reg.path, UID: reg.owner, Chip: reg.id})
			continue
		}
		if reg.parsed != nil && reg.parsed.Layout.Version != 3 && knownV3(release) {
			list = append(list, model.Doubt{Kind: model.LayoutMismatch, PID: p.PID, Region: reg.path, Version: int(reg.parsed.Layout.Version), Chip: reg.id})
		}
	}
	return list
}

func byID(a, b *region) int { return cmp.Compare(a.id, b.id) }

// inReach reports whether a region lies in the /dev/shm of p.
func (r *Reader) inReach(p *process, reg *region) bool {
	d := r.dirs.Of(p.ProcessID)
	return d != nil && reg.dir == d
}

// trackingDisabled reports whether p was started with its accounting switched
// off; false where its environment may not be read.
func (r *Reader) trackingDisabled(p *process) bool {
	env, err := r.processes.Environ(p.Process, func(key string) bool { return key == disableVariable })
	return err == nil && strings.HasPrefix(env[disableVariable], "1") // tt-metal reads the first character
}
