package web

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// red is JavaScript for whether the line between two chips is drawn in the colour
// of what is broken.
func red(name string) string {
	return fmt.Sprintf(`(() => {
		const line = [...document.querySelectorAll(".graph .edge")].find(e => e.textContent.startsWith(%q + ":"));
		const probe = document.createElement("i"); probe.style.color = "var(--bad)"; document.body.append(probe);
		const bad = getComputedStyle(probe).color; probe.remove();
		return line !== undefined && getComputedStyle(line).stroke === bad; })()`, name)
}

// crossings counts the pairs of lines of the drawing that cross: the segments
// between chips that share no end.
const crossings = `(() => {
	const lines = [...document.querySelectorAll(".graph .edge")].map(e => { const n = e.getAttribute("d").match(/-?[\d.]+/g).map(Number); return [n[0], n[1], n[4], n[5]]; });
	const side = (l, x, y) => Math.sign((l[2] - l[0]) * (y - l[1]) - (l[3] - l[1]) * (x - l[0]));
	let n = 0;
	lines.forEach((a, i) => lines.slice(i + 1).forEach(b => {
		if (side(a, b[0], b[1]) * side(a, b[2], b[3]) < 0 && side(b, a[0], a[1]) * side(b, a[2], a[3]) < 0) n++; }));
	return n; })()`

// TestMesh: a link that breaks is red in the drawing and named above it with what
// it cuts off; the table below has every link; the links of no mesh cross.
func TestMesh(t *testing.T) {
	hermetic.Long(t)
	for _, tt := range []struct {
		name, boards string
		cables       bool
		links        int
		cut          []string
		broken       string // the link
		says         []string
	}{
		{"n300", "n300", false, 2, []string{"cut 0 8 9"}, "0L ↔ 0R", []string{"0 of 2 links up", "unreachable, unless over unread links: 0R", "channels 8, 9 down (0 of 2 up)"}},
		{"t3000", "4xn300", true, 20, []string{"cut 1 8 9", "cut 0 14"}, "1L ↔ 1R", []string{"13 of 16 links up", "0L ↔ 1L: channel 14 down (1 of 2 up)"}},
		{"galaxy", "galaxy-wormhole", false, 208, []string{"cut 10 8 9 10 11", "cut 2 8"}, "10 ↔ 11", []string{"203 of 208 links up", "2 ↔ 3: channel 8 down (3 of 4 up)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNodeWith(t, sim.Options{Boards: tt.boards, Cables: tt.cables, UMDDump: true}, []string{"--firmware", "table"})
			b := open(t, desk, n.url+"/topology")
			b.until("all links are listed", fmt.Sprintf(`document.querySelector("#links h2")?.textContent === "Ethernet links (%d)" && document.querySelector(".links p")?.className === "good"`, tt.links))
			if x := eval[int](b, crossings); x != 0 {
				t.Errorf("%d pairs of lines cross", x)
			}
			spots := `[...document.querySelectorAll(".graph .spot text.n")].map(e => e.textContent + e.getAttribute("x") + " " + e.getAttribute("y")).sort().join()`
			whole := eval[string](b, spots)
			n.do(tt.cut)
			b.until("the broken link is red", red(tt.broken))
			for _, text := range tt.says {
				b.says(text)
			}
			b.until("it is the first that is named, above the drawing", fmt.Sprintf(`(() => {
				const first = document.querySelector(".links li");
				return first.textContent.includes(%q) && first.className === "bad" && first.getBoundingClientRect().bottom <= document.querySelector(".graph").getBoundingClientRect().top; })()`, tt.broken))
			b.until("the table begins with what is down", `document.querySelector(".linktable tbody tr td.bad")?.textContent === "down" && document.querySelector(".linktable tbody tr") === document.querySelector(".linktable td.bad").parentNode`)
			if tt.cables {
				b.until("a link between remote chips is not known", `[...document.querySelectorAll(".linktable tbody tr")].some(r => r.textContent.startsWith("0R") && r.textContent.includes("not known"))`)
			}
			if now := eval[string](b, spots); now != whole {
				t.Errorf("chips have moved:\n%s\n%s", whole, now)
			}
			for _, l := range []look{desk, {1280, 900, true}, telephone} {
				b := open(t, l, n.url+"/topology")
				b.until("the broken link is red", red(tt.broken))
				b.fitsWidth("/topology")
				b.shoot(fmt.Sprintf("mesh-%s-%d-%v", tt.name, l.width, l.dark))
			}
			b.visit(n.url + "/")
			b.until("the overview has it in its first row", fmt.Sprintf(`document.querySelector(".troubles li")?.textContent.includes(%q)`, tt.broken))
		})
	}
}

// TestLinkTable: what the ends of a link have counted is in its row; what is not
// known is no 0.
func TestLinkTable(t *testing.T) {
	hermetic.Long(t)
	n := newNodeWith(t, sim.Options{Boards: "2xn300", UMDDump: true}, []string{"--firmware", "full", "--no-uprobe"})
	library, err := ttnn.Imitate(t.TempDir(), ttnn.Newest)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, desk, n.url+"/topology")
	b.says("Retrains and codewords are not known")
	b.says("Remote chips 0R, 1R: ttmond does not read chips behind Ethernet")
	n.ctl("run", "name=job,devices=0,kind=ledger,dram=1G,lib="+library)
	row := func(from, channel string) string {
		return fmt.Sprintf(`([...document.querySelectorAll(".linktable tbody tr")].map(r => [...r.children].map(c => c.textContent)).find(r => r[0] === %q && r[1] === %q) ?? []).join(" ")`, from, channel)
	}
	b.until("the Ethernet cores are read", row("0L", "8")+` === "0L 8 0R 0 up 0 0 0"`)
	n.ctl("retrain", "0", "8")
	b.until("the link has trained again", row("0L", "8")+` === "0L 8 0R 0 up 1 1000 3"`)
	b.until("it is above the others", `document.querySelector(".linktable tbody tr").textContent.startsWith("0L8")`)
	b.until("of a board without a program no counter is known, and none is 0", row("1L", "8")+` === "1L 8 1R 0 up – – –"`)
	b.shoot("mesh-counters")
}
