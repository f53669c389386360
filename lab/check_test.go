package lab

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/source/chipread"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/source/kmd"
	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/field/wire"
)

func (g *guest) output(name string) string { return strings.TrimSpace(g.section[name]) }

// check compares what the guest said with what the chip has.
func (g *guest) check() {
	t := g.t
	text := g.output("version")
	version, ok := kmd.ParseVersion(text)
	if !ok {
		t.Fatalf("the driver did not load: version %q", text)
	}
	// 2.6.0 sends a message at every close of a Blackhole.
	refused := text == "2.6.0" && g.arch == model.Blackhole
	for _, way := range []string{"resource4", "node"} {
		if g.arch == model.Wormhole || way == "node" {
			g.way(text, way, refused)
		}
	}
	if w := g.chip.Writes(); len(w) > 0 {
		t.Errorf("writes over the NoC: %v", w)
	}
	for _, when := range []string{"before", "off", "node", "held", "table", "back", "end"} {
		// ttmond may be in the middle of a sample by the node.
		reading := g.arch == model.Blackhole && (when == "table" || when == "back")
		if n := g.output("refcnt-" + when); n != "0" && !reading {
			t.Errorf("refcnt after %s: %q", when, n)
		}
		if p := g.output("pids-" + when); p != "" && !reading {
			t.Errorf("pids after %s: %q", when, p)
		}
	}
	if k := g.output("kernel-log"); k != "" {
		t.Errorf("the guest's kernel complains:\n%s", k)
	}
	if e := g.output("reader-errors"); e != "" {
		t.Errorf("readers:\n%s", e)
	}
	g.full()
	g.busy(version)
	g.touched(version, refused)
	g.daemon(text, refused)
	if g.arch == model.Wormhole {
		g.powerDown(version)
	}
	if t.Failed() {
		t.Log("ttmond:", g.output("daemon-log"))
	}
}

// way checks one reader of the table.
func (g *guest) way(version, way string, sends bool) {
	compared, wrong := g.words(way)
	messages := g.marks[way+"-after"].messages - g.marks[way].messages
	g.t.Logf("| %s | %s | %s | %d words compared, %d wrong | %d messages, %d writes |", version, g.arch, way, compared, wrong, messages,
		g.marks[way+"-after"].writes-g.marks[way].writes)
	if compared == 0 || wrong > 0 {
		g.t.Errorf("%s: %d words compared, %d wrong", way, compared, wrong)
	}
	if messages != 0 && (!sends || messages != 1) {
		g.t.Errorf("%s: %d firmware messages: %x", way, messages, g.chip.Messages())
	}
}

// answer decodes what a reader printed, behind its stages.
func answer(text string, a *chipread.Response) error {
	at := strings.IndexByte(text, '{')
	if at < 0 {
		return fmt.Errorf("no answer: %q", text)
	}
	return json.Unmarshal([]byte(strings.TrimSpace(text[at:])), a)
}

// words compares the words that a reader read with those of the chip.
func (g *guest) words(way string) (compared, wrong int) {
	var a chipread.Response
	if err := answer(g.section["words-"+way], &a); err != nil || a.Cause != "" {
		g.t.Errorf("%s: cause %q (errno %d), %v", way, a.Cause, a.Errno, err)
		return 0, 0
	}
	for tag, want := range arc.Sample(g.arch) {
		if tag == 32 || tag == 28 || len(telemetry.Wanted(g.arch, []telemetry.Entry{{Tag: tag}}, true)) == 0 {
			continue
		}
		compared++
		if got, ok := a.Words[tag]; !ok || got != want {
			wrong++
			g.t.Errorf("%s: tag %d is %#x, want %#x", way, tag, got, want)
		}
	}
	return compared, wrong
}

// full checks the accounts of dispatch and Ethernet cores.
func (g *guest) full() {
	var a chipread.Response
	if err := answer(g.section["words-full"], &a); err != nil || a.Cause != "" || a.Dispatch == nil {
		g.t.Errorf("full: cause %q (errno %d), dispatch %v %q, %v", a.Cause, a.Errno, a.Dispatch, a.NoDispatch, err)
		return
	}
	p := program(g.arch)
	if d := a.Dispatch; len(d.Queues) != 1 || d.Queues[0].Now != p.Now || d.Queues[0].Busy != p.Busy || d.Programs != p.Programs || d.Workers != int(p.Workers) {
		g.t.Errorf("full: dispatch %+v, want %+v", d, p)
	}
	if len(a.Links) != 2 {
		g.t.Errorf("full: links %+v", a.Links)
	}
	for _, l := range a.Links {
		if want := link(l.Channel); l.Retrains != want.Retrains || l.Corrected != want.Corrected || l.Uncorrected != want.Uncorrected {
			g.t.Errorf("full: link %+v, want %+v", l, want)
		}
	}
}

// busy checks readers beside programs that keep what they need, and of a chip
// that is off the bus.
func (g *guest) busy(version kmd.Version) {
	want := map[string]model.TelemetryCause{"exclusive": model.ExclusiveHolder, "windows": model.NoWindowFree, "dead": model.ReadAllOnes}
	if version.Less(kmd.Version{Major: 2, Minor: 10}) {
		want["exclusive"] = "" // O_EXCL means nothing to it
	}
	for name, cause := range want {
		var a chipread.Response
		if err := answer(g.section[name], &a); err != nil || a.Cause != cause {
			g.t.Errorf("%s: cause %q (errno %d), want %q, %v", name, a.Cause, a.Errno, cause, err)
		}
	}
}

// hits is how often the guest's kernel saw an event between two counts.
func (g *guest) hits(from, to string) (n map[string]int) {
	count := func(name string) map[string]int {
		n := map[string]int{}
		for line := range strings.Lines(g.section["opens-"+name]) {
			if f := strings.Fields(line); len(f) == 3 {
				n[f[0]], _ = strconv.Atoi(f[1])
			}
		}
		if len(n) != 4 {
			g.t.Errorf("the guest's kernel does not count opens (%s): %q", name, g.section["opens-"+name])
		}
		return n
	}
	n = count(to)
	for k, v := range count(from) {
		n[k] -= v
	}
	return n
}

// touched checks what was opened when, as the guest's kernel counts it.
func (g *guest) touched(version kmd.Version, refused bool) {
	t := g.t
	for event, n := range g.hits("off", "off-after") {
		if n != 0 {
			t.Errorf("off: %s %d times", event, n)
		}
	}
	if n := g.marks["off-after"].messages - g.marks["off"].messages; n != 0 {
		t.Errorf("%d messages while ttmond was told not to read the chip", n)
	}
	table := g.hits("table", "table-after")
	t.Logf("driver %s: while ttmond read the table: %v", g.output("version"), table)
	nodes, maps := table["node_open"], table["bar_map"]+table["bar_map_wc"]
	switch {
	case table["config_read"] != 0:
		t.Errorf("the configuration space was read %d times", table["config_read"])
	case g.arch == model.Wormhole && (nodes != 0 || maps == 0):
		t.Errorf("Wormhole as root: the node was opened %d times, resource4 mapped %d times", nodes, maps)
	case g.arch == model.Blackhole && maps != 0, g.arch == model.Blackhole && refused == (nodes > 0):
		t.Errorf("Blackhole: the node was opened %d times, PCI files mapped %d times; refused %v", nodes, maps, refused)
	}
	if n := g.marks["table-after"].messages - g.marks["table"].messages; n != 0 {
		t.Errorf("%d firmware messages while ttmond read the chip", n)
	}
	if g.output("heartbeat") == "" {
		if !version.Less(kmd.Version{Major: 2, Minor: 7}) {
			t.Error("a driver that has a heartbeat made no file for it")
		}
		return
	}
	for event, n := range g.hits("frozen", "frozen-after") {
		if n != 0 {
			t.Errorf("a chip whose firmware hangs: %s %d times", event, n)
		}
	}
}

// daemon checks what ttmond made of it.
func (g *guest) daemon(version string, refused bool) {
	want := "read"
	if refused {
		want = "refused"
	}
	expect := map[string]string{
		"smi-off": "served", "smi-table": want, "smi-reset": want, "smi-removed": "gone", "smi-back": want, "smi-dead": "hung", "smi-alive": want,
	}
	if g.output("heartbeat") != "" {
		expect["smi-frozen"], expect["smi-thawed"] = "hung", want
	}
	for name, condition := range expect {
		s, err := wire.Decode([]byte(g.section[name]))
		if err != nil || !conditions[condition](s) {
			g.t.Errorf("%s: not %s: %v\n%s", name, condition, err, g.section[name])
			continue
		}
		if len(s.Processes) > 0 {
			g.t.Errorf("%s: processes on the device: %+v", name, s.Processes)
		}
		if name == "smi-off" && s.Devices[0].Telemetry.State != model.TelemetryOff {
			g.t.Errorf("off: state %q", s.Devices[0].Telemetry.State)
		}
		if condition == "gone" {
			continue
		}
		tel := &s.Devices[0].Telemetry
		if condition == "read" && (!tel.BoardPower.Known() || tel.BoardPower.V != float64(arc.Sample(g.arch)[54])) {
			g.t.Errorf("%s: driver %s: board power %+v", name, version, tel.BoardPower)
		}
	}
	if r := g.output("reset"); strings.Contains(r, "guest:") || !strings.HasPrefix(version, "1.") && strings.Contains(r, "result 1") {
		g.t.Errorf("the reset failed: %s", r)
	}
}

// powerDown checks that the power-down of an idle Wormhole still comes while it
// is read: drivers since 2.9 send it 5 s after the last close.
func (g *guest) powerDown(version kmd.Version) {
	const up, down = 0x7FFE0FC0, 0x00000FC0
	sent := g.chip.Messages()[g.marks["power"].messages:g.marks["power-after"].messages]
	voted, gone := false, false
	for _, m := range sent {
		voted = voted || m == up
		gone = gone || voted && m == down
	}
	g.t.Logf("driver %s: messages of an open and a close while the chip is read: %#x", g.output("version"), sent)
	votes := !version.Less(kmd.Version{Major: 2, Minor: 9})
	if voted != votes || gone != votes {
		g.t.Errorf("power up %v and down %v, want %v: %#x", voted, gone, votes, sent)
	}
}
