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
	WaitCompiles   WaitVerdict = "compiling"   // compilers that it has started run
	WaitDevice     WaitVerdict = "device"      // a chip of it is in trouble, which is the reason
	WaitNot        WaitVerdict = "not_waiting" // no thread waits for the chips
	WaitStarved    WaitVerdict = "starved"     // it gets no processor time to look at its chips
	WaitRecent     WaitVerdict = "recent"      // a program completed, or the wait began, not long enough ago
	WaitPower      WaitVerdict = "power"       // its chips draw what they draw at work, or that is not known
)

// NeedRule is what decides how long nothing must complete for a suspicion.
type NeedRule string

// The rules.
const (
	NeedPrograms NeedRule = "programs" // twice the longest program, and a margin
	NeedBusyHost NeedRule = "busy"     // several times that, since the host's processors are busy
	NeedBlind    NeedRule = "power"    // a fixed time, since power does not tell work from waiting
)

// Waiting is how a process waits for its chips.
type Waiting struct {
	Verdict WaitVerdict
	Silence time.Duration // since a program completed or the wait began
	Need    time.Duration // how long that must be for a suspicion; more where WaitRecent has not seen its chips at work
	Rule    NeedRule      // that Need follows from
	Longest float64       // s, its longest program
	Device  int           // of WaitDevice: which
	// Of WaitStuck: how many of its chips rest, of how many; the power of the
	// others tells nothing. 0 of 0: not known, the judge is an older release.
	Resting, Chips int
}

// Wait says how a process waits for its chips, as far as one snapshot tells. The
// suspicion itself is the judge's, who has seen the snapshots before.
func Wait(s *model.Snapshot, p *model.Process) Waiting {
	w := Waiting{Device: model.NoDevice, Longest: longestProgram(p), Need: silenceNeeded(s, longestProgram(p))}
	if !powerKnown(s, p) {
		w.Need = max(w.Need, stuckBlind)
	}
	w.Rule = needRule(w.Need, w.Longest)
	if at := lastSign(p); !at.IsZero() {
		w.Silence = s.Time.Sub(at)
	}
	for _, c := range Of(s).Conditions() {
		if c.Kind == model.ConditionStuck && c.Process == p.ID() {
			w.suspected(&c)
			return w
		}
	}
	for i := range p.Work.Chips {
		if d := s.Device(p.Work.Chips[i].Device); d != nil && d.State != model.StateOK {
			w.Device = d.Index
		}
	}
	switch cpu, known := p.CPU.Get(); {
	case p.Condition == model.Compiling && p.Work.Host.WaitingSince.IsZero():
		w.Verdict = WaitCompiles
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

// suspected takes over what the judge went by.
func (w *Waiting) suspected(c *model.Condition) {
	w.Verdict = WaitStuck
	for _, f := range c.Facts {
		switch f.Kind {
		case model.FactSilence:
			w.Silence, w.Longest = seconds(f.Value), f.Limit
		case model.FactNeeded:
			w.Need = seconds(f.Value)
		case model.FactResting:
			w.Resting, w.Chips = int(f.Value), int(f.Limit)
		}
	}
	w.Rule = needRule(w.Need, w.Longest)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// powerKnown reports whether any chip of a process has a power to go by.
func powerKnown(s *model.Snapshot, p *model.Process) bool {
	for i := range p.Work.Chips {
		if d := s.Device(p.Work.Chips[i].Device); d != nil && d.Power.Known() {
			return true
		}
	}
	return false
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
	need := unhurried(longest)
	if cpu, ok := s.Host.CPU.Get(); ok && cpu >= busyHost {
		need *= busyHostFactor
	}
	return need
}

// unhurried is what silenceNeeded is on a host with a processor to spare.
func unhurried(longest float64) time.Duration {
	return stuckMargin + stuckPrograms*seconds(min(longest, maxProgram.Seconds()))
}

// needRule says what a need follows from. It may have been rounded on its way
// here.
func needRule(need time.Duration, longest float64) NeedRule {
	const rounded = time.Millisecond
	switch own := unhurried(longest); {
	case need <= own+rounded:
		return NeedPrograms
	case (need - busyHostFactor*own).Abs() <= rounded:
		return NeedBusyHost
	}
	return NeedBlind
}
