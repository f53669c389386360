package node

import (
	"context"
	"time"
)

// pace is when snapshots are made: at each interval, and between two of them where a
// client demands one. Everybody gets what one client demanded, and in the long run
// those on demand take no more than a tenth of a core and are no more than ten a
// second, however many clients demand how many. A few at a time are made at once.
type pace struct {
	interval time.Duration
	demanded chan struct{}
}

const (
	// perDemand is the least time that a snapshot on demand uses up of all the time
	// there is; burst is how much of it can be used up in advance.
	perDemand = 100 * time.Millisecond
	burst     = 400 * time.Millisecond
)

func newPace(interval time.Duration) *pace {
	return &pace{interval: interval, demanded: make(chan struct{}, 1)}
}

func (p *pace) every() time.Duration { return p.interval }

// demand asks for a snapshot that begins from now on, before the next one is due.
func (p *pace) demand() {
	select {
	case p.demanded <- struct{}{}:
	default:
	}
}

// run makes snapshots until ctx is done: extra ones were demanded. collect returns the
// time of a core that it took.
func (p *pace) run(ctx context.Context, collect func(ctx context.Context, extra bool) time.Duration) {
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	var used time.Time // up to then, by those on demand
	for extra := false; ; {
		begun := time.Now()
		select {
		case <-p.demanded: // before this one began
		default:
		}
		cost := collect(ctx, extra)
		if extra {
			if used.Before(begun) {
				used = begun
			}
			used = used.Add(max(perDemand, 10*cost))
		}
		var soon <-chan time.Time
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-p.demanded:
				soon = time.After(time.Until(used.Add(-burst)))
			case <-soon:
				extra, waiting = true, false
				select {
				case <-tick.C: // it is due as well
					extra = false
				default:
				}
			case <-tick.C:
				extra, waiting = false, false
			}
		}
	}
}
