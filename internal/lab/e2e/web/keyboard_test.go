//go:build web

package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// views are all views of a host with a process.
func views(pid string) []string {
	return []string{"/", "/device/0", "/processes", "/process/" + pid, "/memory", "/failures", "/topology", "/events", "/fleet"}
}

// TestKeyboard: on every view the whole of it can be reached with Tab, in the
// order in which it is read, and what has the focus is seen to have it.
func TestKeyboard(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300,p150a", UMDDump: true})
	pid := n.ctl("run", "name=llama,cmd=python3 serve.py,devices=0,kind=metal,dram=9G")
	b := open(t, desk, n.url+"/")
	b.says("serve.py")
	for _, path := range views(pid) {
		b.visit(n.url + path)
		b.until("there is a host", `document.querySelector("h1").textContent !== "ttmon"`)
		if path == "/device/0" {
			b.until("charts are drawn", `document.querySelectorAll(".chart canvas").length >= 6`)
		}
		eval[any](b, `document.activeElement.blur(), window.scrollTo(0, 0)`)
		b.press("\t")
		if got := eval[string](b, `document.activeElement.className`); got != "skip" {
			t.Errorf("%s: the first Tab leads to %q, want the way past the header", path, got)
		}
		const shown = `(e => { const s = getComputedStyle(e), r = e.getBoundingClientRect(); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 && r.width > 0 && r.height > 0; })(document.activeElement)`
		const name = `(e => e === document.body ? "" : (e.getAttribute("aria-label") || e.textContent || e.placeholder || e.tagName).trim().slice(0, 40) + " " + e.tagName)(document.activeElement)`
		reached := 0
		for ; reached < 400; reached++ {
			what := eval[string](b, name)
			if what == "" {
				break // past the end
			}
			if !eval[bool](b, shown) {
				t.Errorf("%s: %s has the focus, and it cannot be seen", path, what)
			}
			eval[any](b, `document.activeElement.dataset.reached = "1"`)
			b.press("\t")
		}
		missed := eval[[]string](b, `[...document.querySelectorAll("a[href], button:not(:disabled), input, select, summary, [tabindex='0']")]
			.filter(e => e.checkVisibility() && !e.dataset.reached && !e.closest("details:not([open]) > :not(summary)"))
			.map(e => e.tagName + " " + (e.getAttribute("aria-label") || e.textContent).trim().slice(0, 40))`)
		if len(missed) > 0 && reached > 0 {
			t.Errorf("%s: after %d times Tab these were not reached: %s", path, reached, strings.Join(missed, "; "))
		}
	}
	// Without motion nothing moves.
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}},
	}); err != nil {
		t.Fatal(err)
	}
	b.visit(n.url + "/")
	b.says("serve.py")
	if moving := eval[int](b, `[...document.querySelectorAll("*")].filter(e => { const s = getComputedStyle(e); return s.transitionDuration.split(",").some(x => parseFloat(x) > 0) || s.animationName !== "none"; }).length`); moving > 0 {
		t.Errorf("%d elements move although motion is not wanted", moving)
	}
}

// TestColours: axe-core finds nothing serious on any view in any set of colours,
// with a chip that hangs, nor while a past moment is shown.
func TestColours(t *testing.T) {
	source := axe(t)
	n := newNode(t, sim.Options{Boards: "n300,p150a", UMDDump: true})
	pid := n.ctl("run", "name=llama,cmd=python3 serve.py,devices=0,kind=metal,dram=9G")
	n.ctl("hang", "1")
	b := open(t, desk, n.url+"/")
	b.says("1 hung")
	b.until("a past moment is kept", `fetch("/api/v1/past?at=" + encodeURIComponent(new Date().toISOString())).then(r => r.ok)`)
	at := eval[string](b, `encodeURIComponent(new Date().toISOString())`)
	for range 3 {
		b.press("c")
		colours := eval[string](b, `document.documentElement.dataset.theme`)
		for _, path := range append(views(pid), "/?at="+at) {
			b.visit(n.url + path)
			b.until("there is a host", `document.querySelector("h1").textContent !== "ttmon"`)
			where := fmt.Sprintf("%s in %s", path, colours)
			b.accessible(where, source)
			b.fitsWidth(where)
		}
		b.visit(n.url + "/")
		b.press("?")
		b.accessible("the keys in "+colours, source)
		b.shoot("colours-" + colours)
		b.press("\x1b")
		b.until("the keys are gone", `document.querySelector("dialog[open]") === null`)
	}
}
