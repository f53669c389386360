package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/sim"
)

// simulated is what the simulator can do to a device, how it ends, and what
// every view calls it.
type simulated struct {
	device     int
	begin, end []string // for ttmon-sim ctl
	what       string   // in the row of the device
	over       string   // of the event when it is over
}

func simulatedFaults(bus []string) []simulated {
	return []simulated{
		{0, []string{"cut 0 8 9"}, []string{"join 0 8 9"}, "link down", "all channels are up again"},
		{1, []string{"cut 1 8"}, []string{"join 1 8"}, "weak link", "all channels are up again"},
		{2, []string{"hang 2"}, []string{"unhang 2"}, "hung", "device 2 is ok again"},
		{3, []string{"dead 3"}, []string{"alive 3"}, "hung", "device 3 is ok again"},
		{4, []string{"unbind 4"}, []string{"bind " + bus[4]}, "lost", "device 4"},
		{5, []string{"reset 5 block=1ms window=forever"}, []string{"post-reset 5"}, "resetting", "device 5 is ok again"},
		{6, []string{"link 6 gen=1 width=4"}, []string{"link 6 gen=5 width=16"}, "slow link", "device 6 has its full PCIe link again"},
		{7, []string{"set 7 temp1_input 88000"}, []string{"clear 7 temp1_input"}, "hot", "device 7 is no longer hot"},
	}
}

// do runs lines of ctl.
func (n *node) do(lines []string) {
	n.Helper()
	for _, line := range lines {
		n.ctl(strings.Fields(line)...)
	}
}

// row is JavaScript for the row of trouble that is about a device and says
// something.
func (f *simulated) row() string {
	return fmt.Sprintf(`[...document.querySelectorAll(".troubles li")].find(e => new RegExp("\\b%d\\b").test(e.querySelector(".name")?.textContent) && e.textContent.includes(%q))`, f.device, f.what)
}

// TestFaults: every fault is on the page of a telephone, in its first quarter,
// in a line of its own, and in smi at 80 columns; it goes when it is over, and
// both moments are events. All of them together take a quarter of a screen.
func TestFaults(t *testing.T) {
	n := newNodeWith(t, sim.Options{Boards: "2xn300,6xp150a", Frozen: true, UMDDump: true}, []string{"--firmware", "table"})
	b := open(t, telephone, n.url+"/")
	b.until("devices are shown", `document.querySelectorAll(".card").length === 8`)
	bus := eval[[]string](b, `[...document.querySelectorAll(".card .bus")].map(e => e.textContent)`)
	// Links are read every few seconds: what is expected is known first.
	n.awaitOutput("links are known", "2/2", "topo", "--daemon", n.api)
	faults := simulatedFaults(bus)
	for i := range faults {
		f := &faults[i]
		n.do(f.begin)
		b.until(f.what+" is said", "!!("+f.row()+")")
		if y := eval[float64](b, "("+f.row()+").getBoundingClientRect().top"); y > float64(telephone.height)/2 {
			t.Errorf("%s begins at %g px of %d", f.what, y, telephone.height)
		}
		n.awaitOutput(f.what+" in smi", f.what, "smi", "--daemon", n.api)
		n.do(f.end)
		b.until(f.what+" is gone", "!("+f.row()+")")
		n.awaitOutput(f.what+" is over in events", f.over, "events", "--daemon", n.api)
	}
	wide := open(t, look{1280, 800, false}, n.url+"/")
	for i := range faults {
		n.do(faults[i].begin)
	}
	for i := range faults {
		wide.until(faults[i].what+" beside the others", "!!("+faults[i].row()+")")
	}
	rows := eval[int](wide, `document.querySelectorAll(".troubles li").length`)
	if rows > len(faults)+1 { // and one of the host: a board without a driver
		t.Errorf("%d rows for %d devices", rows, len(faults))
	}
	if h := eval[float64](wide, `document.querySelector(".troubles").getBoundingClientRect().height`); h > 800/4 {
		t.Errorf("trouble takes %g of 800 px", h)
	}
	wide.shoot("faults-1280")
	for _, path := range []string{"/processes", "/memory", "/topology", "/events", "/device/0"} {
		wide.visit(n.url + path)
		wide.until("one line leads to the trouble", `document.querySelectorAll(".notices .line").length === 1 && document.querySelectorAll(".troubles li").length === 0`)
	}
}

// awaitOutput runs ttmon until it prints something.
func (n *node) awaitOutput(what, text string, args ...string) {
	n.Helper()
	out := ""
	for end := time.Now().Add(2 * patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if out, _ = n.ttmon(args...); strings.Contains(out, text) {
			return
		}
	}
	n.Fatalf("%s: no %q in ttmon %v:\n%s", what, text, args, out)
}
