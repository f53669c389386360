//go:build web

package web

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// fragmented lets a job fill L1, free every second tensor and ask for more than any
// hole has. It catches the exception.
func fragmented(t *testing.T, j *ttnn.Job) {
	t.Helper()
	ask := func(name string, rows int) bool {
		r, err := j.Do(ttnn.Step{"do": "ask", "name": name, "pool": "l1", "rows": rows, "columns": 2048})
		if err != nil {
			t.Fatal(err)
		}
		return r.Fits
	}
	const rows = 32 * 60
	n := 0
	for ask(fmt.Sprintf("t%d", n), rows) {
		n++
	}
	for i := 0; i < n; i += 2 {
		if _, err := j.Do(ttnn.Step{"do": "free", "name": fmt.Sprintf("t%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if ask("too-large", 2*rows) {
		t.Fatal("it fits")
	}
}

// TestFailures: the real ttnn fails. Its user finds the failure in the list and
// among the events, sees the bank with the missing piece, and saves the page;
// anybody else sees nothing of it.
func TestFailures(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300"})
	dir := t.TempDir()
	j := ttnn.Play(t, ttnn.Options{Dir: dir, Descriptor: sim.MockDescriptor, Env: []string{"XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}, Command: func(name string, args ...string) *exec.Cmd {
		return n.host.Command(t.Context(), filepath.Join(bin, "ttmon-sim"), append([]string{"open", "--", filepath.Join(bin, "ttmon"), "run", "--stacks", "--", name}, args...)...)
	}})
	if _, err := j.Do(ttnn.Step{"do": "open", "mesh": []int{1, 1}}); err != nil {
		t.Fatal(err)
	}
	fragmented(t, j)
	for _, l := range []struct {
		name string
		look
	}{{"desk", look{1280, 800, false}}, {"telephone", telephone}, {"dark", look{1280, 800, true}}} {
		b := open(t, l.look, n.ticket())
		b.says("Signed in as root")
		b.until("a tab leads to failures", `[...document.querySelectorAll("nav a")].some(a => a.pathname === "/failures")`)
		b.visit(n.url + "/failures")
		b.until("the failure is listed", `document.querySelectorAll("table.failures tbody tr").length > 0`)
		b.says("no room for")
		b.accessible("the list of failures", axe(t))
		b.fitsWidth("the list of failures")
		b.shoot("failures-" + l.name)
		eval[any](b, `document.querySelector("table.failures tbody a").click()`)
		b.until("its address can be sent", `/^\/failures\/f\d+$/.test(location.pathname)`)
		b.until("the bank is drawn", `document.querySelectorAll(".bank.missing .block").length > 1 && document.querySelector(".bank.missing .piece") !== null`)
		b.says("fragmented")
		b.says("What would have made it fit")
		b.says("job.py")
		b.accessible("a failure", axe(t))
		b.fitsWidth("a failure")
		b.shoot("failure-" + l.name)
	}
	b := open(t, desk, n.ticket())
	b.says("Signed in as root")
	b.visit(n.url + "/events")
	b.until("the event leads to it", `[...document.querySelectorAll(".events a")].some(a => a.pathname.startsWith("/failures/f"))`)
	path := eval[string](b, `[...document.querySelectorAll(".events a")].find(a => a.pathname.startsWith("/failures/f")).pathname`)
	b.visit(n.url + path)
	b.says("asked for")
	hovers(t, b)
	saves(t, b)
	other := open(t, desk, n.url+path)
	other.says("there is no failed allocation")
	other.visit(n.url + "/failures")
	other.says("Failed allocations (0)")
	if text := eval[string](other, `document.body.innerText`); strings.Contains(text, "job.py") {
		t.Errorf("anybody sees it: %s", text)
	}
}

// hovers: under the pointer is who holds the block.
func hovers(t *testing.T, b *tab) {
	t.Helper()
	b.until("the bank is drawn", `document.querySelector(".bank.missing .block") !== null`)
	eval[any](b, `(() => { const svg = document.querySelector(".bank.missing svg"), r = svg.getBoundingClientRect(), k = document.querySelector(".bank.missing .block").getBoundingClientRect();
		svg.dispatchEvent(new PointerEvent("pointermove", { clientX: k.left + k.width / 2, clientY: r.top + 5, bubbles: true })); })()`)
	b.until("the line is named", `/job\.py:\d+.* at 0x/.test(document.querySelector(".bank.missing .hover").textContent)`)
}

// saves: the page is one file that needs nothing else and runs nothing.
func saves(t *testing.T, b *tab) {
	t.Helper()
	eval[any](b, `window.saved = null; URL.createObjectURL = (blob) => { blob.text().then((s) => { window.saved = s; }); return "about:blank#saved"; };
		HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; };
		[...document.querySelectorAll("button")].find((e) => e.textContent === "Save as HTML").click()`)
	b.until("it is saved", `window.saved !== null && /^ttmon-why-f\d+\.html$/.test(window.savedAs)`)
	page := eval[string](b, `window.saved`)
	for _, part := range []string{"<!doctype html>", "<svg", "fragmented", "job.py", "</html>"} {
		if !strings.Contains(page, part) {
			t.Errorf("the file has no %q", part)
		}
	}
	for _, part := range []string{"<script", "http://", "https://", "src="} {
		if strings.Contains(page, part) {
			t.Errorf("the file has %q", part)
		}
	}
}
