package wire

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// StaleSchema names the contract of ttmon mem --stale --json. It follows the rules
// of the snapshot's.
const StaleSchema = "ttmon.stale/1"

// Stale is what ttmon mem --stale prints for scripts.
type Stale struct {
	Time      time.Time
	Simulated bool
	Regions   []model.Leftover `see:"all"`
}

// AppendStale appends it to dst as JSON, without a newline.
func AppendStale(dst []byte, s *Stale, indent bool) []byte {
	e := encoder{buf: dst, indent: indent}
	stale(&e, s)
	return e.buf
}

// DecodeStale reads what AppendStale wrote.
func DecodeStale(data []byte) (*Stale, error) {
	t, err := parse(data, nil)
	if err != nil {
		return nil, fmt.Errorf("reading what is stale: %w", err)
	}
	d, s := decoder{tree: t}, new(Stale)
	stale(&d, s)
	if d.err != nil {
		return nil, fmt.Errorf("reading what is stale: %w", d.err)
	}
	return s, nil
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
	field(a, "chip_id", (*decimal)(&l.ChipID))
	kernelIndex(a, "index", &l.Device)
	field(a, "owner_uid", &l.Owner)
	field(a, "denied", &l.Denied)
	removable := !l.Denied && l.Blocked == nil && len(l.StaleSlots) > 0
	field(a, "removable", &removable)
	blocking(a, l)
	field(a, "removed", &l.Removed)
	field(a, "failure", &l.Failure)
	each := func(a archive, g *model.StaleSlot) {
		if a.reads() {
			g.Region, g.ChipID, g.Device = l.Region, l.ChipID, l.Device
			g.Mapped = l.Blocked != nil && l.Blocked.Kind == model.RegionInUse
		}
		remains(a, g, now)
	}
	items(a, "ghosts", &l.StaleSlots, each)
	// Those whose process cannot be seen from here: they may be dead.
	items(a, "unseen", &l.Unseen, each)
}

// blocking is why a region cannot be removed: a sentence, its kind, and who
// uses it.
func blocking(a archive, l *model.Leftover) {
	text, kind := "", ""
	var pids []int
	if l.Blocked != nil {
		text, kind, pids = words.Doubt(*l.Blocked), string(l.Blocked.Kind), l.Blocked.PIDs
	}
	field(a, "blocked", &text)
	optional(a, "blocked_kind", &kind)
	rareNumbers(a, "blocked_pids", &pids)
	if a.reads() && kind != "" {
		l.Blocked = &model.Doubt{Kind: model.DoubtKind(kind), PIDs: pids, Region: l.Region}
	}
}

func remains(a archive, g *model.StaleSlot, now time.Time) {
	a.scope()
	field(a, "pid", &g.PID)
	field(a, "name", &g.Name)
	pools(a, &g.Bytes)
	instant(a, "updated", &g.Updated)
	if age := now.Sub(g.Updated).Seconds(); !a.null("age_s", g.Updated.IsZero() || age < 0) {
		a.value(&age)
	}
	a.endScope()
}
