package web

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestEveryHeatMapShowsEveryBadChip: in the cells of the first view and in the mesh,
// whatever they are coloured by, a chip that hangs, is off the bus or is throttled has a
// look that no chip without trouble has. (TestFleetShowsEveryBadChip has the fleet.)
func TestEveryHeatMapShowsEveryBadChip(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "galaxy-wormhole", UMDDump: true})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	which := rand.New(rand.NewPCG(seed, 0)).Perm(32)[:4]
	b := open(t, desk, n.url+"/")
	b.says("No process uses a device")
	n.ctl("run", fmt.Sprintf("name=train,devices=%d,load=1", which[0]))
	n.ctl("ambient", fmt.Sprint(which[0]), "75")
	n.ctl("advance", "2m")
	n.ctl("hang", fmt.Sprint(which[1]))
	n.ctl("hang", fmt.Sprint(which[2]))
	n.ctl("dead", fmt.Sprint(which[3]))
	b.says("3 hung")
	b.says("1 throttled")

	// What a reader sees of a chip: the colours and borders
	// of its cell and of its number, and whether a state stands where others have a figure.
	const look = `(e) => { const s = getComputedStyle(e), n = getComputedStyle(e.querySelector("b, rect.heat") ?? e), p = getComputedStyle(e.querySelector("rect.plate") ?? e);
		return [s.color, s.backgroundColor, s.borderColor, s.outlineStyle, s.outlineColor, s.boxShadow, s.stroke, n.fill, n.color, n.fontWeight, p.stroke].join("|"); }`
	for _, view := range []struct{ name, path, cells, number string }{
		{"cells of the first view", "/", "a.cell", `e.querySelector("b").textContent`},
		{"the mesh", "/topology", "g.spot", `e.querySelector(".n").textContent`},
	} {
		for _, by := range []string{"temperature", "power", "dram", "busy"} {
			t.Run(view.name+" by "+by, func(t *testing.T) {
				b.visit(n.url + view.path + "?by=" + by)
				b.until("each chip in trouble looks unlike all that are well", fmt.Sprintf(`(() => {
					const bad = new Set(%s), look = %s;
					const all = [...document.querySelectorAll(%q)].map((e) => [Number(%s.trim().split(" ")[0]), look(e)]);
					const well = new Set(all.filter(([i]) => !bad.has(i)).map(([, l]) => l));
					const ill = all.filter(([i]) => bad.has(i));
					return all.length === 32 && ill.length === 4 && ill.every(([, l]) => !well.has(l)); })()`, ints(which), look, view.cells, view.number))
			})
		}
	}
	b.shoot("heatmap-mesh")
}

// ints is a list of numbers in JavaScript.
func ints(list []int) string {
	text := "["
	for i, n := range list {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(n)
	}
	return text + "]"
}
