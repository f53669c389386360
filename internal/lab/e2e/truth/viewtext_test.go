package truth

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// text is a number of bytes for people: "~1.5 GiB", "<0.1/31.9 GiB", "≥3.0/12.0GiB", "0 B".
var humanText = regexp.MustCompile(`^([~≥]?)(<?)([0-9]+)(?:\.([0-9]+))?(?:/[0-9.~]+)? ?([KMGT]?i?B)`)

// human reads it, and how far it may be rounded.
func human(text string) (b model.Bytes, rounded uint64, ok bool) {
	m := humanText.FindStringSubmatch(text)
	if m == nil {
		return missingCell(text), 0, strings.Contains(text, "–") || strings.Contains(text, "denied")
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

// A row of a device: how busy it is comes before DRAM.
var tableRow = regexp.MustCompile(`^ +([0-9]+)  .* (?:[~≥<]*[0-9.]+ %|silent|–|stale) +(?:(?:[0-9]+|stale|–) +)?(?:[▓▒░]+ +)?([~≥]?<?[0-9.]+/[~0-9.]+ [GT]iB|–|denied) `)

// table is the table of smi: DRAM of each device.
func (l *looks) table() {
	const view = "smi"
	seen := 0
	for line := range strings.Lines(l.runTTMon("smi", "-c").out) {
		if strings.HasPrefix(line, " Dev ") {
			break // processes begin
		}
		m := tableRow.FindStringSubmatch(line)
		if m == nil {
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
	out := l.runTTMon("mem", "--once").out
	listed := map[string]bool{} // pids by device
	for line := range strings.Lines(out) {
		if m := memDevice.FindStringSubmatch(line); m != nil {
			device, _ = strconv.Atoi(m[1])
			slot = slotNamed[m[2]]
		}
		if m := memDRAM.FindStringSubmatch(line); m != nil && device >= 0 {
			l.dram(view, device, slot, m[1])
		}
		if m := memHolder.FindStringSubmatch(line); m != nil && device >= 0 && !l.viewer.Container {
			l.memHolder(view, device, slot, m[1], m[2])
			listed[fmt.Sprintf("%d %s", device, m[1])] = true
		}
	}
	for x := range l.live() {
		at := l.chips[x.chip].Device
		if x.used[model.DRAM] > 0 && x.seenBy(l.viewer) && !l.viewer.Container && l.c.Boards != "p300c" && !listed[fmt.Sprintf("%d %d", at, x.pid)] {
			l.bad(view, "process %d is not listed with device %d:\n%s", x.pid, at, out)
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
	reportDevice = regexp.MustCompile(`^Device (\S+)$`)
	reportDRAM   = regexp.MustCompile(`^        DRAM +: (\S.*)`)
	reportStale  = regexp.MustCompile(`^        Stale [^:]*: (\S.*)`)
)

// report is smi -q: DRAM of each device, and what the dead left.
func (l *looks) report() {
	const view = "smi -q"
	device, seen := -1, 0
	for line := range strings.Lines(l.runTTMon("smi", "-q", "-d", "MEMORY").out) {
		if m := reportDevice.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			device = l.atBus(m[1])
		}
		if m := reportDRAM.FindStringSubmatch(line); m != nil && device >= 0 {
			l.dram(view, device, -1, m[1])
			seen++
		}
		if m := reportStale.FindStringSubmatch(line); m != nil && device >= 0 {
			if said, rounded, ok := human(m[1]); ok && said.Known() {
				l.add(figure{
					view: view, what: fmt.Sprintf("device %d stale", device), want: l.stale(l.chipsOn(device, -1)),
					said: said, rounded: rounded, doubts: l.about(device),
				})
			}
		}
	}
	if seen != len(l.snap.Devices) {
		l.bad(view, "DRAM of %d devices can be read, there are %d", seen, len(l.snap.Devices))
	}
}

// atBus is the device at a PCI address.
func (l *looks) atBus(address string) int {
	for i := range l.snap.Devices {
		if l.snap.Devices[i].BusID == address {
			return l.snap.Devices[i].Index
		}
	}
	return -1
}

// leftovers is ttmon stale: it must not say that there is nothing where there is
// something.
func (l *looks) leftovers() {
	out := l.runTTMon("stale").out
	if w := l.stale(func(int) bool { return true }); w.low > 0 && strings.Contains(out, "nothing stale") {
		l.bad("stale", "the dead left %d bytes, and it says: %s", w.low, out)
	}
}
