//go:build web

package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestChartsByKeyboard: the cursor of a chart moves with the arrow keys and says
// the values there, + and - zoom; a chart that is saved has its legend, the host
// and the date.
func TestChartsByKeyboard(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	n.ctl("run", "name=llama,cmd=python3 serve.py,devices=0,load=0.8,kind=metal,dram=9G")
	b := open(t, desk, n.url+"/device/0?range=5m")
	const plot = `document.querySelector('.plot[aria-label^="Core Power"]')`
	b.until("the chart of the power has several values", `[...document.querySelectorAll(".chart")].some(e => e.querySelector('.plot[aria-valuemax]')?.getAttribute("aria-valuemax") > 5) && `+plot+` !== null`)
	eval[any](b, plot+`.focus()`)
	b.press(kb.End)
	b.until("the last value is read out", `/^\d\d:\d\d:\d\d.*, .* \d+ W$/.test(`+plot+`.getAttribute("aria-valuetext"))`)
	last := eval[string](b, plot+`.getAttribute("aria-valuetext")`)
	now := eval[int](b, `Number(`+plot+`.getAttribute("aria-valuenow"))`)
	b.press(kb.ArrowLeft)
	b.until("a sample back", fmt.Sprintf(`Number(%s.getAttribute("aria-valuenow")) === %d && %s.getAttribute("aria-valuetext") !== %q`, plot, now-1, plot, last))
	b.until("the other charts follow", `document.querySelectorAll(".chart .when").values().filter(e => /^\d\d:\d\d:\d\d/.test(e.textContent)).toArray().length > 3`)
	b.accessible("a device with a cursor", axe(t))
	b.shoot("charts-keyboard")
	b.press("+")
	b.until("it is zoomed, and so is the address", `new URLSearchParams(location.search).has("from")`)
	width := `(q => Date.parse(q.get("to")) - Date.parse(q.get("from")))(new URLSearchParams(location.search))`
	if w := eval[int](b, width); w < 60_000 || w > 160_000 {
		t.Errorf("five minutes zoomed once are %d ms", w)
	}

	b.visit(n.url + "/?")
	b.until("the charts of the last minutes are drawn", `document.querySelectorAll(".chart .legend li").length >= 4`)
	eval[any](b, `(() => {
		window.saved = [];
		const make = URL.createObjectURL;
		URL.createObjectURL = (blob) => { saved.push({blob}); return make(blob); };
		const click = HTMLAnchorElement.prototype.click;
		HTMLAnchorElement.prototype.click = function () { if (this.download) saved.at(-1).name = this.download; else click.call(this); };
		const chart = [...document.querySelectorAll(".chart")].find(e => e.textContent.startsWith("Power"));
		for (const b of chart.querySelectorAll(".tools button")) b.click();
		window.chart = chart.querySelector("canvas");
	})()`)
	b.until("both files are saved", `saved.length === 2 && saved.every(s => s.name)`)
	for _, name := range eval[[]string](b, `saved.map(s => s.name)`) {
		if !strings.HasPrefix(name, "testhost Power 20") {
			t.Errorf("a chart is saved as %q, want host, title and date", name)
		}
	}
	b.until("the picture has a line of each colour below the chart", `(async () => {
		const png = saved.find(s => s.blob.type === "image/png").blob, bitmap = await createImageBitmap(png);
		const c = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d", {willReadFrequently: true});
		c.drawImage(bitmap, 0, 0);
		const below = bitmap.height - 42 * devicePixelRatio - chart.height;
		if (below < 20 * devicePixelRatio) return false;
		const pixels = c.getImageData(0, bitmap.height - below, bitmap.width, below).data, found = new Set();
		for (let i = 0; i < pixels.length; i += 4) found.add("#" + [...pixels.slice(i, i + 3)].map(x => x.toString(16).padStart(2, "0")).join(""));
		return [1, 2].every(i => found.has(getComputedStyle(document.documentElement).getPropertyValue("--line" + i).trim()));
	})()`)
}

// TestSearchSuggests: devices, processes, users are suggested while one writes, by
// the keyboard and by the pointer, and lead there.
func TestSearchSuggests(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	pid := n.ctl("run", "name=llama,cmd=python3 serve.py --model llama,devices=0,kind=metal,dram=9G")
	b := open(t, desk, n.url+"/")
	b.says("serve.py")
	eval[any](b, `document.querySelector(".search").focus()`)
	b.press("serve")
	b.until("the process is suggested, by its command", fmt.Sprintf(`(l => l.length === 1 && l[0].textContent.includes("serve.py") && l[0].textContent.includes(%q))(document.querySelectorAll("#suggestions li"))`, pid))
	b.accessible("suggestions", axe(t))
	b.shoot("search")
	b.press(kb.ArrowDown)
	b.until("it is chosen", `document.querySelector(".search").getAttribute("aria-activedescendant") === "suggestion0"`)
	b.press(kb.Enter)
	b.until("it leads to the process", fmt.Sprintf(`location.pathname === "/process/%s" && document.querySelectorAll("#suggestions li").length === 0`, pid))
	eval[any](b, `document.querySelector(".search").focus()`)
	b.press("p150")
	b.until("the device is suggested", `document.querySelectorAll("#suggestions li").length === 1`)
	b.press(kb.Escape)
	b.until("Escape closes the list, not the search", `document.querySelector("#suggestions").hidden && document.activeElement.matches(".search")`)
	b.press("a")
	b.until("it is there again", `document.querySelectorAll("#suggestions li").length === 1`)
	eval[any](b, `document.querySelector("#suggestions li").dispatchEvent(new PointerEvent("pointerdown", {bubbles: true, cancelable: true}))`)
	b.until("it leads to the device", `location.pathname.startsWith("/device/0000:")`)
	small := open(t, telephone, n.url+"/?filter=")
	small.says("serve.py")
	eval[any](small, `document.querySelector(".search").focus()`)
	small.press("root")
	small.until("the user is suggested", `[...document.querySelectorAll("#suggestions li")].some(e => e.textContent.startsWith("user root"))`)
	small.fitsWidth("suggestions")
	small.shoot("search-390")
}

// TestMarks: the chart of a process marks what happened to it and to its devices,
// and nothing of others; that of a device what happened to the device.
func TestMarks(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	b := open(t, desk, n.url+"/")
	b.says("No process uses a device")
	other := n.ctl("run", "name=other,cmd=python3 other.py,devices=1,kind=metal,dram=1G")
	b.says("other.py")
	pid := n.ctl("run", "name=llama,cmd=python3 serve.py,devices=0,kind=metal,dram=9G")
	b.says("serve.py")
	b.until("both starts are events", `fetch("/api/v1/events").then(r => r.json()).then(a => a.events.filter(e => e.kind === "started" && e.pid > 0).length === 2)`)
	n.ctl("hang", "0")
	b.says("1 hung")

	// What the cursor reads out along a chart.
	along := func(plot string) string {
		t.Helper()
		b.until("the chart has values", fmt.Sprintf(`document.querySelector(%q)?.getAttribute("aria-valuemax") > 1`, plot))
		eval[any](b, fmt.Sprintf(`document.querySelector(%q).focus()`, plot))
		b.press(kb.Home)
		var read []string
		for range 400 {
			at := eval[string](b, fmt.Sprintf(`document.querySelector(%q).getAttribute("aria-valuetext")`, plot))
			if len(read) > 0 && read[len(read)-1] == at {
				return strings.Join(read, "\n")
			}
			read = append(read, at)
			b.press(kb.ArrowRight)
		}
		t.Fatalf("no end after %d samples", len(read))
		return ""
	}
	for _, tt := range []struct{ name, path, plot, want, never string }{
		{"a process", "/process/" + pid + "?range=5m", `.plot[aria-label^="DRAM by device"]`, "(" + pid + ") started", "(" + other + ")"},
		{"a device", "/device/0?range=5m", `.plot[aria-label^="Core Power"]`, "device 0 is hung", "(" + other + ")"},
		{"the first view", "/", `.plot[aria-label^="Power"]`, "device 0 is hung", "is no device"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.visit(n.url + tt.path)
			b.until("events have come", `fetch("/api/v1/events").then(r => r.json()).then(a => a.events.some(e => e.text.includes("device 0 is hung")))`)
			for end := time.Now().Add(timeout); ; time.Sleep(200 * time.Millisecond) {
				got := along(tt.plot)
				if strings.Contains(got, tt.never) {
					t.Fatalf("what happened to others is marked:\n%s", got)
				}
				if strings.Contains(got, tt.want) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%q is not marked:\n%s", tt.want, got)
				}
			}
		})
	}
}
