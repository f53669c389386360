package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/faults"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// do runs lines of ctl. A module can be removed when ttmond's chip readers have
// closed their device nodes.
func (n *node) do(lines []string) {
	n.Helper()
	for _, line := range lines {
		for end := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
			_, err := n.host.Ctl(faults.Arguments(line)...)
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "is in use") || time.Now().After(end) {
				n.Fatalf("ctl %s: %v", line, err)
			}
		}
	}
}

// row is JavaScript for the row of trouble that is about a device and says
// something.
func row(f *faults.Fault) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".troubles li")].find(e => new RegExp("\\b%d\\b").test(e.querySelector(".name")?.textContent) && e.textContent.includes(%q))`, f.Device, f.What)
}

// TestFaults: every fault is on the page of a telephone, in its upper half, in
// one line of its own; it goes when it is over, and both moments are events. All
// of them together take a quarter of a screen, and one line on other views.
func TestFaults(t *testing.T) {
	n := newNodeWith(t, sim.Options{Boards: faults.Boards, Frozen: true, UMDDump: true}, []string{"--firmware", "table"})
	b := open(t, telephone, n.url+"/")
	b.until("devices are shown", `document.body.textContent.includes("18 devices")`)
	out, _ := n.ttmon("smi", "--query-device=pci.bus_id", "--format=csv,noheader", "--daemon", n.api)
	bus := strings.Fields(out)
	if len(bus) != 18 {
		t.Fatalf("bus ids %q", bus)
	}
	// Links are read every few seconds: what is expected is known first.
	n.awaitOutput("links are known", "2/2", "topo", "--daemon", n.api)
	list := faults.All(bus)
	if testing.Short() {
		list = list[:2]
	}
	for i := range list {
		t.Run(list[i].Name, func(t *testing.T) { n.play(t, b, &list[i]) })
	}
	n.playTogether(t, list)
}

// play plays one fault from its beginning to its end.
func (n *node) play(t *testing.T, b *tab, f *faults.Fault) {
	n.do(f.Begin)
	b.until(f.What+" is said", "!!("+row(f)+")")
	if y := eval[float64](b, "("+row(f)+").getBoundingClientRect().top"); y > float64(telephone.height)/2 {
		t.Errorf("%s begins at %g px of %d", f.What, y, telephone.height)
	}
	if rows := eval[int](b, `document.querySelectorAll(".troubles li").length`); rows > 2 { // and one of the host: boards without a driver
		t.Errorf("%d rows of trouble for %s", rows, f.Name)
	}
	n.do(f.End)
	b.until(f.What+" is gone", "!("+row(f)+")")
	n.awaitOutput(f.Name+" is over in events", f.Over, "events", "--daemon", n.api)
}

// playTogether plays all faults at once.
func (n *node) playTogether(t *testing.T, list []faults.Fault) {
	wide := open(t, look{1280, 800, false}, n.url+"/")
	played := 0
	for i := range list {
		if !list[i].Host {
			n.do(list[i].Begin)
			played++
		}
	}
	for i := range list {
		if !list[i].Host {
			wide.until(list[i].Name+" beside the others", "!!("+row(&list[i])+")")
		}
	}
	rows := eval[int](wide, `document.querySelectorAll(".troubles li").length`)
	if rows > played+1 { // and one of the host: a board without a driver
		t.Errorf("%d rows for %d devices", rows, played)
	}
	if h := eval[float64](wide, `document.querySelector(".troubles").getBoundingClientRect().height`); h > 800/4 {
		t.Errorf("trouble takes %g of 800 px", h)
	}
	wide.shoot("faults-1280")
	for _, path := range []string{"/processes", "/memory", "/topology", "/events", "/runs", "/device/0"} {
		wide.visit(n.url + path)
		wide.until("one line leads to the trouble", `document.querySelectorAll(".notices .line").length === 1 && document.querySelectorAll(".troubles li").length === 0`)
		if h := eval[float64](wide, `document.querySelector(".notices").getBoundingClientRect().height`); h > 800/4 {
			t.Errorf("on %s trouble takes %g of 800 px", path, h)
		}
	}
}

// awaitOutput runs ttmon until it prints something.
func (n *node) awaitOutput(what, text string, args ...string) {
	n.Helper()
	out := ""
	for end := time.Now().Add(2 * timeout); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if out, _ = n.ttmon(args...); strings.Contains(out, text) {
			return
		}
	}
	n.Fatalf("%s: no %q in ttmon %v:\n%s", what, text, args, out)
}
