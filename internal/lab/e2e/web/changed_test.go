package web

import (
	"net/url"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestWhatChanged: a stretch that is marked on a chart shows what changed in it, the
// device that began to hang before all others, and a row leads to its device.
func TestWhatChanged(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "p150a,n300"})
	b := open(t, desk, n.url+"/")
	const known = `fetch("/api/v1/range?metric=temperature.asic&step=1s&start=" + new Date(Date.now() - 60000).toISOString()).then(r => r.json()).then(a => a.series.length === 2 && a.series.every(s => s.values.filter(v => v !== null).length >= 8))`
	b.until("there is a time to compare with", known)
	if shown := eval[bool](b, `document.querySelector(".changed") !== null`); shown {
		t.Error("it is there before a stretch is marked")
	}
	from := time.Now()
	n.ctl("hang", "1")
	b.until("the device hangs, and was seen so for some seconds", `fetch("/api/v1/snapshot").then(r => r.json()).then(s => s.devices[1].state === "hung")`)
	b.until("its values are gone", `fetch("/api/v1/range?metric=temperature.asic&step=1s&start=" + new Date(Date.now() - 6000).toISOString()).then(r => r.json()).then(a => !a.series.some(s => s.device === 1 && s.values.some(v => v !== null)))`)
	stretch := "?" + url.Values{"from": {from.UTC().Format(time.RFC3339)}, "to": {time.Now().UTC().Format(time.RFC3339)}}.Encode()
	for _, view := range []string{"/", "/events", "/device/0"} {
		b.visit(n.url + view + stretch)
		b.until("it is said that the device hangs, on "+view, `(() => {
			const rows = [...document.querySelectorAll(".changed tbody tr")].map((r) => [...r.children].map((c) => c.textContent));
			return rows.some((r) => r[0] === "100" && r[1] === "1" && r[2] === "hung" && r[3] === "0" && r[4] !== "0") && rows.every((r) => Number(r[0]) >= 2); })()`)
		b.fitsWidth(view)
	}
	b.shoot("changed")
	b.until("a row leads to its device", `(() => { const a = document.querySelector(".changed tbody a"); return a !== null && a.getAttribute("href").startsWith("/device/"); })()`)
	b.visit(n.url + "/?from=2020-01-01T00:00:00Z&to=2020-01-01T00:10:00Z")
	b.until("where nothing was sampled there is nothing to compare", `document.querySelector(".changed")?.textContent.includes("nothing to compare")`)
}
