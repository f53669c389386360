package web

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestTimeIsHonest: what is not known any more is not shown as the present, the
// time in which ttmond was away is a gap that is hatched, and a drag over charts
// that share their time is one step back.
func TestTimeIsHonest(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "p150a,n300"})
	b := open(t, desk, n.url+"/device/0?range=5m")
	const chart = `document.querySelector("figure[aria-label='ASIC Temperature']")`
	const legend = chart + `?.querySelector(".legend").textContent ?? ""`
	b.until("the temperature is known", `/ASIC Temperature \d+(\.\d)? °C$/.test(`+legend+`)`)

	n.ctl("hang", "0")
	b.until("a value that is not known any more has its age", `/ASIC Temperature – \d+(\.\d)? °C \d+ s ago/.test(`+legend+`)`)
	b.shoot("time-stale")
	n.ctl("unhang", "0")
	b.until("the temperature is known again", `/ASIC Temperature \d+(\.\d)? °C$/.test(`+legend+`)`)

	b.mu.Lock()
	b.foreign = true // the console says that ttmond does not answer
	b.mu.Unlock()
	n.stop()
	time.Sleep(12 * time.Second) // the absence
	n.start(strings.TrimPrefix(n.url, "http://"))
	const asked = `fetch("/api/v1/range?metric=temperature.asic&device=&step=1s&start=" + new Date(Date.now() - 120000).toISOString()).then(r => r.json())`
	b.until("the API says when nothing was sampled", asked+`.then(a => {
		const text = a.away.map(x => x ? "a" : ".").join("");
		const lines = a.series.every(s => s.values.every((v, i) => v === null || !a.away[i]));
		return /\.a{8,}\.\.\./.test(text) && lines; })`)
	// Along a row through the middle hatching is on and off again and again; a
	// grid and a line are not.
	const strokes = `(() => { const from = ` + chart + `.querySelector("canvas"); const c = new OffscreenCanvas(from.width, 1).getContext("2d", {willReadFrequently: true});
		c.drawImage(from, 0, -Math.round(from.height / 2)); const d = c.getImageData(0, 0, from.width, 1).data; let n = 0;
		for (let i = 7; i < d.length; i += 4) n += (d[i] > 40) !== (d[i - 4] > 40); return n; })()`
	b.visit(n.url + "/device/0?range=5m")
	b.until("the absence is hatched", `(`+legend+`).includes("ASIC") && `+strokes+` > 40`)
	b.shoot("time-away")

	before := eval[int](b, `history.length`)
	b.until("the charts are there", `document.querySelectorAll(".u-over").length >= 6`)
	b.drag(`document.querySelector(".u-over")`, 0.4, 0.8)
	b.until("a part of the time is shown", `new URLSearchParams(location.search).has("from")`)
	if after := eval[int](b, `history.length`); after != before+1 {
		t.Errorf("a drag made %d entries in the history of the browser", after-before)
	}
	b.until("the zoom can be left", `document.body.textContent.includes("zoomed")`)
}

// drag drags the mouse over an element, from one share of its width to another.
func (b *tab) drag(element string, from, to float64) {
	b.Helper()
	box := eval[[]float64](b, `(() => { const e = `+element+`; e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()`)
	for _, step := range []struct {
		kind    input.DispatchMouseEventType
		share   float64
		pressed int64
	}{
		{input.DispatchMouseEventTypeMouseMoved, from, 0},
		{input.DispatchMouseEventTypeMousePressed, from, 1},
		{input.DispatchMouseEventTypeMouseMoved, (from + to) / 2, 1},
		{input.DispatchMouseEventTypeMouseMoved, to, 1},
		{input.DispatchMouseEventTypeMouseReleased, to, 0},
	} {
		at := input.DispatchMouseEventParams{Type: step.kind, X: box[0] + step.share*box[2], Y: box[1] + box[3]/2, Buttons: step.pressed, ClickCount: 1, Button: input.MouseButtonLeft}
		if _, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, at); err != nil {
			b.Fatal(err)
		}
	}
}
