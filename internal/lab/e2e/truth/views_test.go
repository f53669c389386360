package truth

import (
	"encoding/csv"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// figure is one number that a view shows, and what it should be.
type figure struct {
	view, what string
	want       want
	said       model.Bytes
	rounded    uint64 // by how much what is shown may be off because it was rounded
	doubts     []model.Doubt
	exact      bool // a doubt would hide what is known
}

// judge holds the figure against the truth.
func (f *figure) judge() (verdict, string) {
	n, bound, known := f.said.Best()
	near := f.want.low
	if known && n > near {
		near = min(n, f.want.high)
	}
	if known && max(n, near)-min(n, near) <= f.rounded {
		n = near
	}
	v, why := judge(near, boundedBytes(n, bound, f.said), f.doubts)
	switch {
	case known && bound == model.Exact && f.want.unknown:
		return wrong, "without a mark, and it cannot be known"
	case known && bound == model.AtLeast && n > f.want.low && f.want.unknown:
		return wrong, "more than anybody can know"
	case f.exact && v != right && v != wrong:
		return wrong, "all of it is known, and it is not shown: " + why
	case f.exact && bound != model.Exact:
		return wrong, "all of it is known, and it is marked: " + why
	}
	return v, why
}

// boundedBytes is n with the bound of a figure, if that has one.
func boundedBytes(n uint64, bound model.Bound, said model.Bytes) model.Bytes {
	if !said.Known() {
		return said
	}
	if bound == model.Exact {
		return model.ExactBytes(n)
	}
	return model.BoundBytes(max(n, 1), bound) // "at least 0" is nothing
}

// looks is what a viewer finds in all views.
type looks struct {
	*composedHost
	viewer  viewer
	snap    *model.Snapshot
	figures []figure
	broken  []string // views that could not be read
}

// viewAs reads every view as a viewer.
func (h *composedHost) viewAs(v viewer) *looks {
	h.Helper()
	l := &looks{composedHost: h, viewer: v}
	text := l.runTTMon("smi", "--json").out
	var err error
	if l.snap, err = wire.Decode([]byte(text)); err != nil {
		l.broken = append(l.broken, fmt.Sprintf("smi --json: %v: %s", err, text))
		return l
	}
	l.smi()
	l.deviceCSV()
	l.appsCSV()
	l.table()
	l.report()
	l.mem()
	l.leftovers()
	l.check()
	if !v.Container {
		l.blocks()
	}
	if !v.Direct && v == h.c.Viewers[0] {
		l.history()
	}
	return l
}

// runTTMon runs ttmon as the viewer.
func (l *looks) runTTMon(args ...string) said {
	l.Helper()
	line := []string{filepath.Join(bin, "ttmon")}
	if l.viewer.UID != 0 {
		line = append(asUser(l.viewer.UID), line...)
	}
	if l.viewer.Container {
		line = append([]string{
			"unshare", "--pid", "--fork", "--mount", "sh", "-c",
			`mount --rbind /proc/driver "$1" && mount -t proc proc /proc && mount --rbind "$1" /proc/driver && shift && exec "$@"`,
			"sh", l.TempDir(),
		}, line...)
	}
	line = append(line, args...)
	if l.viewer.Direct {
		line = append(line, "--direct")
	} else {
		line = append(line, "--daemon", l.d.api)
	}
	return l.run(line[0], line[1:]...)
}

func (l *looks) add(f figure) { l.figures = append(l.figures, f) }

func (l *looks) bad(view, format string, args ...any) {
	l.broken = append(l.broken, view+": "+fmt.Sprintf(format, args...))
}

// about are the doubts that a user finds beside the figures of a device.
func (l *looks) about(index int) []model.Doubt {
	return append(l.beside(l.snap, index), l.snap.Device(index).Doubts...)
}

// chipsOn selects the chips of a device, or one of them.
func (l *looks) chipsOn(device, slot int) func(int) bool {
	return func(i int) bool {
		return l.chips[i].Device == device && (slot < 0 || l.chips[i].Slot == slot)
	}
}

// judged are the pools whose figures are judged: the stand-in has DRAM only,
// so that nothing can be said of the others where one is.
func (l *looks) judged(device int) []model.Pool {
	for x := range l.live() {
		if x.has(device) && x.inDRAM >= 0 && !x.other {
			return []model.Pool{model.DRAM}
		}
	}
	return tracked
}

// smi is what smi --json says.
func (l *looks) smi() {
	for i := range l.snap.Devices {
		d := &l.snap.Devices[i]
		name := fmt.Sprintf("device %d", d.Index)
		l.memory(name, d.Index, -1, &d.Memory)
		for slot := range d.Chips {
			if len(d.Chips) > 1 {
				l.memory(fmt.Sprintf("%s chip %d", name, slot), d.Index, slot, &d.Chips[slot].Memory)
			}
		}
	}
	if l.viewer.Container {
		return // its pids are others
	}
	for x := range l.live() {
		l.process(x)
	}
}

// memory is what is said of a device or of one of its chips.
func (l *looks) memory(name string, device, slot int, m *model.Memory) {
	chips, doubts := l.chipsOn(device, slot), l.about(device)
	for _, p := range l.judged(device) {
		l.add(figure{
			view: "smi --json", what: name + " " + p.String(), want: l.truth(chips, p), said: m.Pools[p].Used, doubts: doubts,
			exact: p == model.DRAM && l.mustBeExact(device, l.viewer),
		})
	}
	dram := &m.Pools[model.DRAM]
	occupied := l.occupied(chips)
	if dram.Occupied.Known() {
		l.add(figure{view: "smi --json", what: name + " occupied", want: occupied, said: dram.Occupied, doubts: doubts})
	}
	if dram.Free.Known() && dram.Total.Known() && dram.Free.V > dram.Total.V-min(occupied.low, dram.Total.V) {
		l.add(figure{view: "smi --json", what: name + " free", want: want{high: dram.Total.V - min(occupied.low, dram.Total.V)}, said: model.ExactBytes(dram.Free.V)})
	}
	if m.Stale.Known() {
		l.add(figure{view: "smi --json", what: name + " stale", want: l.stale(chips), said: m.Stale, doubts: doubts})
	}
}

// process is what is said of a process and the devices it has open.
func (l *looks) process(x *holder) {
	i := slices.IndexFunc(l.snap.Processes, func(p model.Process) bool { return p.PID == x.pid })
	if i < 0 {
		if l.viewer.UID == 0 && !x.child { // whose descriptors are its parent's
			l.bad("smi --json", "process %d is not there", x.pid)
		}
		return
	}
	p := &l.snap.Processes[i]
	for _, u := range p.Devices {
		if u.Device == model.NoDevice || slices.ContainsFunc(u.Doubts, func(d model.Doubt) bool { return d.Kind == model.NotTTMetal }) && x.other {
			continue
		}
		w, holds := l.holds(x, l.chipsOn(u.Device, -1))
		if !holds {
			continue // what it holds elsewhere is judged there
		}
		l.add(figure{
			view: "smi --json", what: fmt.Sprintf("process %d on device %d dram", x.pid, u.Device), want: w,
			said: u.Memory[model.DRAM], doubts: append(slices.Clone(u.Doubts), p.Doubts...),
			exact: x.seenBy(l.viewer) && l.c.Boards != "p300c" && !x.other,
		})
	}
}

// holds is what a process has asked for on some chips, if one of them is its own.
func (l *looks) holds(x *holder, chips func(int) bool) (w want, ok bool) {
	for i := range l.chips {
		if chips(i) && l.on(x, i) {
			w, ok = w.plus(exactly(x.used[model.DRAM])), true
		}
	}
	return w, ok
}

// deviceCSV is smi --query-device.
func (l *looks) deviceCSV() {
	const view = "smi --query-device"
	rows := l.csv(view, "--query-device=index,memory.used,memory.used.bound,memory.occupied,memory.occupied.bound,memory.stale,memory.stale.bound")
	for _, r := range rows {
		device, err := strconv.Atoi(r[0])
		if err != nil || l.snap.Device(device) == nil {
			l.bad(view, "no device %q", r[0])
			continue
		}
		chips, doubts := l.chipsOn(device, -1), l.about(device)
		name := fmt.Sprintf("device %d ", device)
		l.add(figure{view: view, what: name + "memory.used", want: l.truth(chips, model.DRAM), said: l.cell(view, r[1], r[2]), rounded: mib / 2, doubts: doubts})
		if occupied := l.cell(view, r[3], r[4]); occupied.Known() {
			l.add(figure{view: view, what: name + "memory.occupied", want: l.occupied(chips), said: occupied, rounded: mib / 2, doubts: doubts})
		}
		if stale := l.cell(view, r[5], r[6]); stale.Known() {
			l.add(figure{view: view, what: name + "memory.stale", want: l.stale(chips), said: stale, rounded: mib / 2, doubts: doubts})
		}
	}
}

// appsCSV is smi --query-apps.
func (l *looks) appsCSV() {
	const view = "smi --query-apps"
	if l.viewer.Container {
		return
	}
	for _, r := range l.csv(view, "--query-apps=pid,device_index,used_memory,used_memory.bound,memory.doubts") {
		for x := range l.live() {
			chips := func(int) bool { return true } // of a chip whose device is not known
			if device, err := strconv.Atoi(r[1]); err == nil {
				chips = l.chipsOn(device, -1)
			}
			w, holds := l.holds(x, chips)
			if r[0] != strconv.Itoa(x.pid) || x.other || !holds {
				continue
			}
			var doubts []model.Doubt
			for kind := range strings.FieldsSeq(r[4]) {
				doubts = append(doubts, model.Doubt{Kind: model.DoubtKind(kind)})
			}
			l.add(figure{view: view, what: "process " + r[0] + " used_memory", want: w, said: l.cell(view, r[2], r[3]), rounded: mib / 2, doubts: doubts})
		}
	}
}

func (l *looks) csv(view, query string) [][]string {
	l.Helper()
	r := l.runTTMon("smi", query, "--format=csv,noheader")
	reader := csv.NewReader(strings.NewReader(r.out))
	reader.TrimLeadingSpace, reader.LazyQuotes = true, true
	rows, err := reader.ReadAll()
	if err != nil || len(rows) == 0 && strings.Contains(query, "device=") {
		l.bad(view, "%v: %s%s", err, r.out, r.err)
	}
	return rows
}

// cell is a number of MiB and what the column beside it says of it.
func (l *looks) cell(view, number, bound string) model.Bytes {
	mark, digits := model.Exact, number
	for b, m := range marks {
		if rest, ok := strings.CutPrefix(number, m); ok {
			mark, digits = b, rest
		}
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(digits, " MiB"), 10, 64)
	if err != nil {
		return missingCell(number)
	}
	if bound != mark.String() {
		l.bad(view, "%q is said to be %s", number, bound)
	}
	return shown(n*mib, mark)
}

var marks = map[model.Bound]string{model.AtLeast: "≥", model.Unsure: "~"}

// missingCell is why a number is missing.
func missingCell(text string) model.Bytes {
	if strings.Contains(strings.ToLower(text), "denied") || strings.Contains(strings.ToLower(text), "permission") {
		return model.NoBytes(model.Denied)
	}
	return model.NoBytes(model.Absent)
}

// shown is a number as a view shows it. "At least 0", rounded, is at least something.
func shown(n uint64, mark model.Bound) model.Bytes {
	if mark == model.AtLeast {
		return model.BoundBytes(max(n, 1), mark)
	}
	return model.BoundBytes(n, mark)
}

var (
	perfUsed  = regexp.MustCompile(`'dev([0-9]+)_memory_used'=([0-9]+)B`)
	checkMark = regexp.MustCompile(`(?m)^device ([0-9]+): memory\.used is ([~≥])`)
)

// check is the answer of ttmon check: performance data has no marks, so that a
// line below says which numbers have one.
func (l *looks) check() {
	const view = "check"
	out := l.runTTMon("check").out
	bounds := map[string]model.Bound{}
	for _, m := range checkMark.FindAllStringSubmatch(out, -1) {
		for b, mark := range marks {
			if m[2] == mark {
				bounds[m[1]] = b
			}
		}
	}
	for _, m := range perfUsed.FindAllStringSubmatch(out, -1) {
		device, _ := strconv.Atoi(m[1])
		n, _ := strconv.ParseUint(m[2], 10, 64)
		l.add(figure{
			view: view, what: fmt.Sprintf("device %d memory_used", device), want: l.truth(l.chipsOn(device, -1), model.DRAM),
			said: shown(n, bounds[m[1]]), doubts: l.about(device),
		})
	}
	for _, device := range l.snap.Devices {
		w := l.stale(l.chipsOn(device.Index, -1))
		if device.Memory.Stale.Known() && w.low > 0 && strings.Contains(out, "TTMON OK") && !strings.Contains(out, "stale memory on device "+strconv.Itoa(device.Index)) {
			l.bad(view, "what the dead left on device %d is not said: %s", device.Index, out)
		}
	}
}

// settles is how long ttmond may take to show what has changed.
const settles = 3 * time.Second
