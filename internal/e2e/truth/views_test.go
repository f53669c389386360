package truth

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/wire"
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
		return wrong, "without a mark, and nobody can know it"
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

// look asks for every view.
func (h *composedHost) lookAs(v viewer) *looks {
	h.Helper()
	l := &looks{composedHost: h, viewer: v}
	text := l.ask("smi", "--json").out
	var err error
	if l.snap, err = wire.Decode([]byte(text)); err != nil {
		l.broken = append(l.broken, fmt.Sprintf("smi --json: %v: %s", err, text))
		return l
	}
	l.smi()
	l.deviceCSV()
	l.appsCSV()
	l.table()
	l.mem()
	l.check()
	if !v.Container {
		l.blocks()
	}
	if !v.Direct && v == h.c.Viewers[0] {
		l.history()
	}
	return l
}

// ask runs ttmon as the viewer.
func (l *looks) ask(args ...string) said {
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
		chips := l.chipsOn(u.Device, -1)
		if !chips(x.chip) {
			continue // what it holds elsewhere is judged there
		}
		f := figure{
			view: "smi --json", what: fmt.Sprintf("process %d on device %d dram", x.pid, u.Device), want: l.holds(x),
			said: u.Memory[model.DRAM], doubts: append(slices.Clone(u.Doubts), p.Doubts...),
		}
		l.add(f)
	}
}

// holds is what a process has asked for on its device.
func (l *looks) holds(x *holder) (w want) {
	for i := range l.chips {
		if l.on(x, i) {
			w = w.plus(exactly(x.used[model.DRAM]))
		}
	}
	return w
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
			device, _ := strconv.Atoi(r[1])
			if r[0] != strconv.Itoa(x.pid) || x.other || l.chips[x.chip].Device != device {
				continue
			}
			var doubts []model.Doubt
			for kind := range strings.FieldsSeq(r[4]) {
				doubts = append(doubts, model.Doubt{Kind: model.DoubtKind(kind)})
			}
			l.add(figure{view: view, what: "process " + r[0] + " used_memory", want: l.holds(x), said: l.cell(view, r[2], r[3]), rounded: mib / 2, doubts: doubts})
		}
	}
}

func (l *looks) csv(view, query string) [][]string {
	l.Helper()
	r := l.ask("smi", query, "--format=csv,noheader")
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

// text is a number of bytes for people: "~1.5 GiB", "<0.1/31.9 GiB", "≥3.0/12.0GiB", "0 B".
var humanText = regexp.MustCompile(`^([~≥]?)(<?)([0-9]+)(?:\.([0-9]+))?(?:/[0-9.~]+)? ?([KMGT]?i?B)`)

// human reads it, and how far it may be rounded.
func human(text string) (b model.Bytes, rounded uint64, ok bool) {
	m := humanText.FindStringSubmatch(text)
	if m == nil {
		return missingCell(text), 0, strings.Contains(text, "N/A") || strings.Contains(text, "denied") || strings.Contains(text, "unknown")
	}
	unit := map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[m[5]]
	value, _ := strconv.ParseFloat(m[3]+"."+m[4]+"0", 64)
	last := unit
	for range m[4] {
		last /= 10
	}
	mark := model.Exact
	for b, text := range marks {
		if m[1] == text {
			mark = b
		}
	}
	rounded = uint64(last/2) + 1
	if m[2] == "<" {
		value, rounded = value/2, uint64(value*unit) // anything below it
	}
	return shown(uint64(value*unit), mark), rounded, true
}

// A row of a device: its activity comes before DRAM.
var tableRow = regexp.MustCompile(`^ +([0-9]+)  .* (?:[~≥<]*[0-9]+ %|N/A|–|stale) +(?:[▓▒░]+ +)?([~≥]?<?[0-9.]+/[~0-9.]+ [GT]iB|N/A|denied|unknown) `)

// table is the table of smi: DRAM of each device.
func (l *looks) table() {
	const view = "smi"
	seen := 0
	for line := range strings.Lines(l.ask("smi", "-c").out) {
		m := tableRow.FindStringSubmatch(line)
		if m == nil || !strings.Contains(line, ":00.0") {
			continue
		}
		device, _ := strconv.Atoi(m[1])
		l.dram(view, device, -1, m[2])
		seen++
	}
	if seen != len(l.snap.Devices) {
		l.bad(view, "%d rows of devices can be read, there are %d", seen, len(l.snap.Devices))
	}
}

// dram is a figure for people: what is occupied where that is known, or else
// what was asked for.
func (l *looks) dram(view string, device, slot int, text string) {
	said, rounded, ok := human(text)
	if !ok {
		l.bad(view, "device %d: %q cannot be read", device, text)
		return
	}
	chips := l.chipsOn(device, slot)
	used, occupied := l.truth(chips, model.DRAM), l.occupied(chips)
	w := want{low: used.low, high: max(used.high, occupied.high)}
	l.add(figure{view: view, what: fmt.Sprintf("device %d chip %d DRAM", device, slot), want: w, said: said, rounded: rounded, doubts: l.about(device)})
}

var (
	memDevice = regexp.MustCompile(`^device ([0-9]+) \S+(?: ([LR]))?\s`)
	memDRAM   = regexp.MustCompile(`^  DRAM +(\S.*)`)
	memHolder = regexp.MustCompile(`^ +([0-9]+) \S+ +(\S+(?: [KMGT]?i?B)?) +DRAM `)
)

// mem is mem --once: DRAM of each chip, and who holds it.
func (l *looks) mem() {
	const view = "mem --once"
	device, slot := -1, -1
	for line := range strings.Lines(l.ask("mem", "--once").out) {
		if m := memDevice.FindStringSubmatch(line); m != nil {
			device, _ = strconv.Atoi(m[1])
			slot = slotNamed[m[2]]
		}
		if m := memDRAM.FindStringSubmatch(line); m != nil && device >= 0 {
			l.dram(view, device, slot, m[1])
		}
		if m := memHolder.FindStringSubmatch(line); m != nil && device >= 0 && !l.viewer.Container {
			l.memHolder(view, device, slot, m[1], m[2])
		}
	}
}

var slotNamed = map[string]int{"": -1, "L": 0, "R": 1}

func (l *looks) memHolder(view string, device, slot int, pid, text string) {
	said, rounded, ok := human(text)
	if !ok {
		l.bad(view, "process %s: %q cannot be read", pid, text)
	}
	chips := l.chipsOn(device, slot)
	for x := range l.live() {
		if strconv.Itoa(x.pid) != pid || !said.Known() {
			continue
		}
		w := want{}
		for i := range l.chips {
			if chips(i) && l.on(x, i) {
				w.low += x.used[model.DRAM]
				w.high += max(x.used[model.DRAM], x.occupies().high)
			}
		}
		l.add(figure{view: view, what: "process " + pid + fmt.Sprintf(" on device %d chip %d", device, slot), want: w, said: said, rounded: rounded, doubts: l.about(device)})
	}
}

var (
	perfUsed  = regexp.MustCompile(`'dev([0-9]+)_memory_used'=([0-9]+)B`)
	checkMark = regexp.MustCompile(`(?m)^device ([0-9]+): memory\.used is ([~≥])`)
)

// check is the answer of ttmon check: performance data has no marks, so that a
// line below says which numbers have one.
func (l *looks) check() {
	const view = "check"
	out := l.ask("check").out
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
		if device.Memory.Stale.Known() && w.low > 0 && !strings.Contains(out, "WARNING") {
			l.bad(view, "what the dead left on device %d is not said: %s", device.Index, out)
		}
	}
}

// blocks is mem -p of every process whose allocator is known.
func (l *looks) blocks() {
	for x := range l.live() {
		if x.other || x.inDRAM < 0 {
			continue
		}
		var doc struct {
			Processes []struct {
				Late       bool
				Allocators []struct {
					Pools []struct {
						Pool     string
						Exact    bool
						Used     *uint64 `json:"used_bytes"`
						Occupied *uint64 `json:"occupied_bytes"`
					}
				}
			}
		}
		r := l.ask("mem", "-p", strconv.Itoa(x.pid), "--json")
		if r.code != 0 {
			continue // it says why there are none
		}
		if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
			l.bad("mem -p --json", "%v: %s", err, r.out)
			continue
		}
		used, occupied, exact := uint64(0), uint64(0), true
		usedKnown := true
		for _, p := range doc.Processes {
			for _, a := range p.Allocators {
				for _, pool := range a.Pools {
					if pool.Pool != "dram" {
						continue
					}
					exact = exact && pool.Exact
					if pool.Used == nil {
						usedKnown = false
					} else {
						used += *pool.Used
					}
					if pool.Occupied != nil {
						occupied += *pool.Occupied
					}
				}
			}
		}
		bound, doubts := model.Exact, []model.Doubt(nil)
		if !exact {
			bound, doubts = model.Unsure, []model.Doubt{{Kind: model.EventsLost}}
		}
		name := fmt.Sprintf("process %d ", x.pid)
		if usedKnown {
			l.add(figure{view: "mem -p --json", what: name + "used_bytes", want: exactly(x.used[model.DRAM]), said: model.BoundBytes(used, bound), doubts: doubts})
		}
		l.add(figure{view: "mem -p --json", what: name + "occupied_bytes", want: exactly(uint64(x.inDRAM)), said: model.BoundBytes(occupied, bound), doubts: doubts})
	}
}

// settles is how long ttmond may take to show what has changed.
const settles = 3 * time.Second
