package session

import (
	"context"
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// failed are the failures that a ttmond has reported.
type failed struct {
	told map[string]toldFailure
}

type toldFailure struct {
	count uint64
	at    time.Time
}

// againAfter is how long a failure that repeats is not asked for again: it may be
// large.
const againAfter = 10 * time.Second

// since asks a ttmond for failures after a time that it has not told, or of which
// there are more by now. With all, also for those that it told just now.
func (f *failed) since(ctx context.Context, c *client.Client, begun time.Time, all bool) (list []*failure.Record) {
	kept, err := c.Failures(ctx)
	if err != nil {
		return nil // it is older, or busy: the next look asks again
	}
	now := time.Now()
	if f.told == nil {
		f.told = map[string]toldFailure{}
	}
	for i := range kept {
		k := &kept[i]
		t, known := f.told[k.ID]
		if k.Last.Before(begun) || known && (t.count == k.Count || !all && now.Sub(t.at) < againAfter) {
			continue
		}
		if r, _, err := c.Failure(ctx, k.ID, 0); err == nil {
			f.told[k.ID] = toldFailure{r.Count, now}
			list = append(list, r)
		}
	}
	return list
}

// ledgerFailures are the failures of ledgers, where no ttmond keeps them. They have
// numbers of their own.
type ledgerFailures struct {
	told map[string]ledgerFailure // by the path of the ledger and the number there
	next int
}

type ledgerFailure struct {
	toldFailure
	id      string
	pending *failure.Record // newer than what was told
}

// new are the failures that were not told, or of which there are more by now.
func (l *ledgerFailures) new(found *track.Sweep) (list []*failure.Record) {
	for i := range found.Processes {
		p := &found.Processes[i]
		list = append(list, l.of(p.Path, p.Ledger, failure.Process{PID: p.PID, Start: p.Start, UID: -1, Name: p.Ledger.Comm})...)
	}
	for i := range found.Ended {
		e := &found.Ended[i]
		list = append(list, l.of(e.Path, e.Ledger, failure.Process{PID: e.Ledger.PID, Start: e.Ledger.StartTicks, UID: e.UID, Name: e.Ledger.Comm})...)
	}
	return list
}

func (l *ledgerFailures) of(path string, from *ledgerfile.Ledger, who failure.Process) (list []*failure.Record) {
	now := time.Now()
	for i := range from.Failures {
		x := &from.Failures[i]
		key := fmt.Sprint(path, " ", x.Number)
		t, known := l.told[key]
		if known && t.count == x.Count {
			continue
		}
		r, ok := failure.FromLedger(from, x, who)
		if !ok {
			continue
		}
		if !known {
			l.next++
			t.id = fmt.Sprintf("f%d", l.next)
		}
		r.ID, t.count = t.id, x.Count
		if t.pending = r; !known || now.Sub(t.at) >= againAfter {
			list = append(list, r)
			t.at, t.pending = now, nil
		}
		if l.told == nil {
			l.told = map[string]ledgerFailure{}
		}
		l.told[key] = t
	}
	return list
}

// failures takes in failures of ledgers, unless a ttmond tells them, too.
func (s *Session) failures(list []*failure.Record, now time.Time) {
	if s.latest != nil && s.latest.Source == model.Daemon {
		return
	}
	for _, f := range list {
		if s.latest != nil {
			f.FillFrom(s.latest)
			f.Judge()
		}
		s.r.Failure(f, now)
	}
}

// rest are those that repeated since they were told.
func (l *ledgerFailures) rest() (list []*failure.Record) {
	for _, t := range l.told {
		if t.pending != nil {
			list = append(list, t.pending)
		}
	}
	return list
}
