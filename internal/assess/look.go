package assess

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// WaitVerdict is what is concluded of a process that may be stuck.
type WaitVerdict string

// The verdicts, in the order in which they are looked for.
const (
	WaitStuck      WaitVerdict = "stuck"       // all that a suspicion takes
	WaitNotWatched WaitVerdict = "not_watched" // no libttmon is in it: nothing is known of its waits
	WaitNoWork     WaitVerdict = "no_work"     // none of its chips has reported a program
	WaitStopped    WaitVerdict = "stopped"     // by a signal or a debugger
	WaitDevice     WaitVerdict = "device"      // a chip of it is in trouble, which is the reason
	WaitNot        WaitVerdict = "not_waiting" // no thread waits for the chips
	WaitStarved    WaitVerdict = "starved"     // it gets no processor time to look at its chips
	WaitRecent     WaitVerdict = "recent"      // a program completed, or the wait began, not long enough ago
	WaitPower      WaitVerdict = "power"       // its chips draw what they draw at work, or that is not known
)

// Waiting is how a process waits for its chips.
type Waiting struct {
	Verdict WaitVerdict
	Silence time.Duration // since a program completed or the wait began
	Need    time.Duration // how long that must be for a suspicion
	Longest float64       // s, its longest program
	Device  int           // of WaitDevice: which
}

// Wait says how a process waits for its chips, as far as one snapshot tells. The
// suspicion itself is the judge's, who has seen the snapshots before.
func Wait(s *model.Snapshot, p *model.Process) Waiting {
	w := Waiting{Device: model.NoDevice, Longest: longestProgram(p), Need: silenceNeeded(s, longestProgram(p))}
	if at := lastSign(p); !at.IsZero() {
		w.Silence = s.Time.Sub(at)
	}
	for _, c := range Of(s).Conditions() {
		if c.Kind == model.ConditionStuck && c.Process == p.ID() {
			w.Verdict = WaitStuck
			return w
		}
	}
	for i := range p.Work.Chips {
		if d := s.Device(p.Work.Chips[i].Device); d != nil && d.State != model.StateOK {
			w.Device = d.Index
		}
	}
	switch cpu, known := p.CPU.Get(); {
	case !p.Work.Watched:
		w.Verdict = WaitNotWatched
	case len(p.Work.Chips) == 0:
		w.Verdict = WaitNoWork
	case p.Condition == model.Stopped:
		w.Verdict = WaitStopped
	case w.Device != model.NoDevice:
		w.Verdict = WaitDevice
	case p.Work.Host.WaitingSince.IsZero():
		w.Verdict = WaitNot
	case w.Silence < w.Need:
		w.Verdict = WaitRecent
	case known && cpu < starved:
		w.Verdict = WaitStarved
	default:
		w.Verdict = WaitPower
	}
	return w
}

// longestProgram is the longest of a process, in seconds.
func longestProgram(p *model.Process) (longest float64) {
	for i := range p.Work.Chips {
		longest = max(longest, p.Work.Chips[i].Longest)
	}
	return longest
}

// lastSign is when a program of a process last completed, or the wait began.
func lastSign(p *model.Process) time.Time {
	at := p.Work.Host.WaitingSince
	for i := range p.Work.Chips {
		if t := p.Work.Chips[i].LastRecord; t.After(at) {
			at = t
		}
	}
	return at
}

// silenceNeeded is for how long nothing must have completed.
func silenceNeeded(s *model.Snapshot, longest float64) time.Duration {
	need := stuckMargin + stuckPrograms*time.Duration(min(longest, maxProgram.Seconds())*float64(time.Second))
	if cpu, ok := s.Host.CPU.Get(); ok && cpu >= busyHost {
		need *= busyHostFactor
	}
	return need
}
