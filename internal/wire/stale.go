package wire

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// StaleSchema names the contract of ttmon stale --json. It follows the rules
// of the snapshot's.
const StaleSchema = "ttmon.stale/1"

// Stale is what ttmon stale prints for scripts.
type Stale struct {
	Time      time.Time
	Simulated bool
	Regions   []model.Leftover
}

// AppendStale appends it to dst as JSON, without a newline.
func AppendStale(dst []byte, s *Stale, indent bool) []byte {
	e := encoder{buf: dst, indent: indent}
	stale(&e, s)
	return e.buf
}

func stale(a archive, s *Stale) {
	a.begin()
	schema := StaleSchema
	field(a, "schema", &schema)
	instant(a, "time", &s.Time)
	field(a, "simulated", &s.Simulated)
	items(a, "regions", &s.Regions, func(a archive, l *model.Leftover) { leftover(a, l, s.Time) })
	a.close()
}

func leftover(a archive, l *model.Leftover, now time.Time) {
	field(a, "region", &l.Region)
	if a.key("chip_id") {
		a.decimal(&l.ChipID)
	}
	kernelIndex(a, &l.Device)
	field(a, "owner_uid", &l.Owner)
	field(a, "denied", &l.Denied)
	removable := !l.Denied && l.Blocked == nil && len(l.Ghosts) > 0
	field(a, "removable", &removable)
	blocked, kind := "", ""
	if l.Blocked != nil {
		blocked, kind = words.Doubt(*l.Blocked), string(l.Blocked.Kind)
	}
	field(a, "blocked", &blocked)
	optional(a, "blocked_kind", &kind)
	field(a, "removed", &l.Removed)
	field(a, "failure", &l.Failure)
	items(a, "ghosts", &l.Ghosts, func(a archive, g *model.Ghost) { remains(a, g, now) })
	// Those whose process cannot be seen from here: they may be dead.
	items(a, "unseen", &l.Unseen, func(a archive, g *model.Ghost) { remains(a, g, now) })
}

func remains(a archive, g *model.Ghost, now time.Time) {
	a.scope()
	field(a, "pid", &g.PID)
	field(a, "name", &g.Name)
	pools(a, &g.Bytes)
	instant(a, "updated", &g.Updated)
	if age := now.Sub(g.Updated).Seconds(); !a.null("age_s", g.Updated.IsZero() || age < 0) {
		a.float(&age)
	}
	a.endScope()
}
