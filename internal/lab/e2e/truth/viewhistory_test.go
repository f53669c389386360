package truth

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// historyDoc is what ttmon history --json prints.
type historyDoc struct {
	Series []struct {
		Labels map[string]string
		Points []struct {
			Time  time.Time
			Value *float64
			Bound string
		}
	}
}

// history is every point that ttmond remembers of the composition: each must
// be what was so then. Points close to a change may be of before or after it.
func (l *looks) history() {
	const view = "history"
	since := time.Since(l.past[0].since) + time.Second
	r := l.runTTMon("history", "memory.used", "--json", "--step", "1s", "--since", fmt.Sprintf("%ds", int(since.Seconds())+1))
	var doc historyDoc
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		l.bad(view, "%v: %s%s", err, r.out, r.err)
		return
	}
	for _, s := range doc.Series {
		device, err := strconv.Atoi(s.Labels["device"])
		if err != nil || l.snap.Device(device) == nil {
			l.bad(view, "no device %q", s.Labels["device"])
			continue
		}
		for _, p := range s.Points {
			m, sure := l.then(p.Time)
			if !sure || p.Value == nil {
				continue
			}
			what := fmt.Sprintf("device %d memory.used at %s", device, p.Time.Format("15:04:05.000"))
			if !m.daemon {
				l.bad(view, "%s: %v, and no ttmond was there", what, *p.Value)
				continue
			}
			bound := boundNamed[p.Bound]
			l.add(figure{
				view: view, what: what, want: m.dram[device], said: shown(uint64(*p.Value*mib), bound), rounded: mib / 2,
				doubts: []model.Doubt{{Kind: doubtOf[bound]}}, // the history keeps bounds, and no doubts
			})
		}
	}
}

var (
	boundNamed = map[string]model.Bound{"exact": model.Exact, "at_least": model.AtLeast, "unsure": model.Unsure}
	doubtOf    = map[model.Bound]model.DoubtKind{model.Exact: model.ChipInferred, model.AtLeast: model.NotAttached, model.Unsure: model.OtherThreads}
)

// then is what was so at a time, if it was so for long enough before it.
func (l *looks) then(at time.Time) (m moment, sure bool) {
	for _, x := range l.past {
		if x.since.After(at) {
			break
		}
		sure = at.Sub(x.since) > settles && at.After(x.settled)
		m = x
	}
	return m, sure && m.dram != nil
}
