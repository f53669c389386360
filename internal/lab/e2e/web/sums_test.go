package web

import (
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestSumOfUnknown: a sum over devices of which one is not known is at least so
// much, and is drawn so: it does not look as if less were used.
func TestSumOfUnknown(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "9xp150a"})
	b := open(t, desk, n.url+"/")
	const chart = `document.querySelector("figure[aria-label='Power, all devices']")`
	const figure = chart + `?.querySelector(".legend b").textContent ?? ""`
	b.until("the sum of all is known", `/^\d+ W$/.test(`+figure+`)`)
	const ink = `(() => { const c = new OffscreenCanvas(1200, 20).getContext("2d", {willReadFrequently: true}); c.drawImage(` + chart +
		`.querySelector("canvas"), -60, -10); return c.getImageData(0, 0, 1200, 20).data.filter((v, i) => i % 4 === 3 && v > 0).length; })()`
	b.until("the chart is drawn", chart+`?.querySelector("canvas") != null`)
	// There is a grid, and until the chart has its scale a line may be there, too.
	const least = `(() => { const now = ` + ink + `; return window.least = Math.min(window.least ?? now, now); })()`
	eval[int](b, least)
	n.ctl("hang", "3")
	b.until("the sum is at least so much", `/^≥\d+ W$/.test(`+figure+`)`)
	b.until("the chart says why", chart+`.querySelector(".legend").textContent.includes("a device is unknown")`)
	b.until("it is hatched above", ink+" > 2 * "+least+" + 20")
	b.until("the API has a gap there", `(() => { const ago = (s) => new Date(Date.now() - s * 1000).toISOString();
		return fetch("/api/v1/range?metric=power.draw&step=1s&start=" + ago(10) + "&end=" + ago(0)).then(r => r.json()).then(a => {
			const last = (device) => a.series.find(s => s.device === device)?.values.at(-3) ?? null;
			return last(2) !== null && last(3) === null; }); })()`)
	b.shoot("sum-of-unknown")
}

// TestProcessChanges: of the last hour every change of what a process held is
// known, not only what whole snapshots have.
func TestProcessChanges(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "p150a"})
	pid := n.ctl("run", "name=llama,devices=0,load=0.8,kind=metal,dram=9G,l1=30M,moves")
	b := open(t, desk, n.url+"/process/"+pid+"?range=5m")
	b.says("every change")
	b.until("changes are known that are less than ten seconds apart", `fetch("/api/v1/processes/`+pid+`/history").then(r => r.json()).then(a => {
		const times = a.points.map(p => Date.parse(p.time));
		return times.length > 4 && times.every((t, i) => i === 0 || t > times[i - 1]) && times.some((t, i) => i > 0 && t - times[i - 1] < 5000);
	})`)
	b.shoot("process-changes")
}
