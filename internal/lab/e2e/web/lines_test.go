//go:build web

package web

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestLines: in the bank map and in the treemap each line of a program has a
// colour, which the legend names; pointer and keyboard show what a block is. A
// viewer without a ticket sees none of it.
func TestLines(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "2xp150a"})
	n.ctl("run", "name=small,cmd=python3 small.py,devices=0,kind=ledger,dram=1G")
	pid := n.ctl("run", "name=serve,cmd=python3 serve.py,devices=0,kind=ledger,dram=8G,blocks=8,hole=512M,l1=30M,tags=weights/kv_cache/scores/scores")
	many := n.ctl("run", "name=many,cmd=python3 many.py,devices=1,kind=ledger,dram=12G,blocks=12,tags=a/b/c/d/e/f/g/h/i/j/k/l")
	b := open(t, desk, n.ticket())
	b.says("Signed in as root")

	b.visit(fmt.Sprintf("%s/process/%s", n.url, pid))
	b.until("the legend of DRAM is there", `document.querySelectorAll(".bank .lines").length === 2`)
	legend := eval[[]string](b, `[...document.querySelectorAll(".bank .lines")][0].innerText.split("\n").map(x => x.trim()).filter(x => /^(weights|kv_cache|scores)/.test(x))`)
	if got := strings.Join(legend, "|"); !strings.HasPrefix(got, "scores") || len(legend) != 3 {
		t.Errorf("the legend lists %q; scores holds most", legend)
	}
	// The bank is 4080 MiB with blocks of 128 MiB, each followed by a hole of 64.
	const pixel = `(() => { const c = document.querySelector(".bank canvas"), x = Math.round((%d * 192 + 64) / 4080 * c.width), d = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
		d.drawImage(c, x, 10, 1, 1, 0, 0, 1, 1); return [...d.getImageData(0, 0, 1, 1).data].join() })()`
	colourAt := func(block int) string {
		return eval[string](b, fmt.Sprintf(pixel, block))
	}
	colours := []string{colourAt(0), colourAt(1), colourAt(2), colourAt(3), colourAt(4)}
	if colours[2] != colours[3] || colours[0] != colours[4] || len(slices.Compact(slices.Sorted(slices.Values(colours)))) != 3 {
		t.Errorf("the blocks of weights, kv_cache, scores, scores, weights have the colours %q", colours)
	}
	if swatches := eval[int](b, `new Set([...document.querySelectorAll(".bank .lines")][0].querySelectorAll(".swatch").values().map(e => getComputedStyle(e).backgroundColor)).size`); swatches != 3 {
		t.Errorf("the legend has %d colours for three lines", swatches)
	}
	eval[any](b, `(() => { const c = document.querySelector(".bank canvas"), r = c.getBoundingClientRect();
		c.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: r.left + (192 + 64) / 4080 * r.width, clientY: r.top + 10})) })()`)
	b.until("the pointer shows line, size and age", `/^kv_cache · 128 MiB a bank, asked 1.0 GiB · \d+ s old, since .* · at 0xc000000$/.test(document.querySelector(".bank .hover").textContent)`)
	eval[any](b, `(() => { const c = document.querySelector(".bank canvas"); c.dispatchEvent(new PointerEvent("pointerleave", {bubbles: true})); c.focus() })()`)
	for _, key := range []string{kb.Home, kb.ArrowRight, kb.ArrowRight} {
		b.press(key)
	}
	b.until("so does the keyboard", `(() => { const c = document.querySelector(".bank canvas"); return /^scores · 128 MiB/.test(c.getAttribute("aria-valuetext")) && c.getAttribute("aria-valuenow") === "3" })()`)
	eval[any](b, `document.querySelector(".bank .lines button").focus()`)
	b.until("what has the focus in the legend stands out", fmt.Sprintf(pixel+` !== %q`, 0, colours[0]))
	b.accessible("the lines of a process", axe(t))

	b.visit(fmt.Sprintf("%s/process/%s", n.url, many))
	b.until("more lines than colours", `document.querySelector(".bank .lines")?.innerText.includes("5 other lines")`)
	if got := eval[int](b, `document.querySelectorAll(".bank .lines li").length`); got != 8 {
		t.Errorf("12 lines are %d rows, want 7 and the others", got)
	}

	for _, l := range []look{desk, telephone, {1280, 800, true}} {
		b := open(t, l, n.ticket())
		b.says("Signed in as root")
		b.visit(n.url + "/memory")
		b.until("the process that holds most is chosen, by its command", `[...document.querySelectorAll(".panel .choice select")].some(e => e.selectedOptions[0]?.textContent.includes("many.py"))`)
		b.visit(n.url + "/memory?pid=" + pid)
		b.until("the treemap has the lines of the chosen process", `new Set([...document.querySelectorAll(".tile.part")].map(e => getComputedStyle(e.firstElementChild).borderColor)).size === 3`)
		b.until("each process has a colour of its own", `new Set([...document.querySelectorAll(".owners .swatch")].map(e => getComputedStyle(e).backgroundColor)).size === 3`)
		b.fitsWidth("memory with lines")
		b.accessible("memory with lines", axe(t))
		b.shoot(fmt.Sprintf("lines-memory-%d-%v", l.width, l.dark))
		b.visit(fmt.Sprintf("%s/process/%s", n.url, pid))
		b.until("the legend is there", `document.querySelectorAll(".bank .lines").length === 2`)
		b.fitsWidth("a process with lines")
		b.shoot(fmt.Sprintf("lines-process-%d-%v", l.width, l.dark))
	}
	b.visit(n.url + "/memory?device=" + eval[string](b, `fetch("/api/v1/snapshot").then(r => r.json()).then(s => s.devices[0].bus_id)`))
	b.until("of a device it begins with the largest holder there", `[...document.querySelectorAll(".panel .choice select")].some(e => e.selectedOptions[0]?.textContent.includes("serve.py") && e.options.length === 2)`)
	b.until("its lines are there", `document.querySelector(".tile.part") !== null`)
	eval[any](b, `document.querySelector(".tile.part").dispatchEvent(new PointerEvent("pointerover", {bubbles: true}))`)
	b.until("the pointer shows line, size and age there, too", `/^(scores|weights|kv_cache) · [\d.]+ GiB · \d blocks · oldest \d+ s old/.test(document.querySelector(".treemap + .shown").textContent)`)

	other := open(t, desk, n.url+"/memory")
	other.says("you see what any user of this host sees")
	other.until("areas are drawn", `document.querySelectorAll(".tile.process").length === 3`)
	if text := eval[string](other, `document.body.innerHTML`); strings.Contains(text, "kv_cache") {
		t.Error("lines are shown without a ticket")
	}
}

// TestTreemapLabels: a process has one colour on all its devices, and one label,
// where that fits without breaking its words; its name is read out on each.
func TestTreemapLabels(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "4xp150a"})
	n.ctl("run", "name=wide,cmd=python3 wide.py,devices=0+1+2+3,kind=ledger,dram=12G")
	n.ctl("run", "name=other,cmd=python3 other.py,devices=1,kind=ledger,dram=8G")
	for _, tt := range []struct {
		name   string
		look   look
		labels int
	}{{"desk", desk, 1}, {"telephone", look{320, 700, false}, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			b := open(t, tt.look, n.url+"/memory")
			b.until("there is an area on each device", `document.querySelectorAll(".tile.process").length === 5`)
			const wide = `[...document.querySelectorAll(".tile.process")].filter(e => e.textContent.includes("wide.py") || e.getAttribute("aria-label")?.includes("wide.py"))`
			if got := eval[int](b, wide+`.length`); got != 4 {
				t.Errorf("%d areas have the name of the process, want 4", got)
			}
			if got := eval[int](b, `new Set(`+wide+`.map(e => getComputedStyle(e.firstElementChild).borderColor)).size`); got != 1 {
				t.Errorf("the process has %d colours", got)
			}
			if got := eval[int](b, wide+`.filter(e => e.querySelector(".words")?.textContent.includes("wide.py")).length`); got != tt.labels {
				t.Errorf("%d labels are seen, want %d", got, tt.labels)
			}
			b.fitsWidth("the treemap")
			b.accessible("the treemap", axe(t))
			b.shoot("treemap-" + tt.name)
		})
	}
}

// oneHelper is a program all of whose tensors are made by one small function.
const oneHelper = `import sys
import ttnn

device = ttnn.open_mesh_device(ttnn.MeshShape(1, 1))

def make(mib):
    return ttnn.empty([1, 1, 32, mib * 16384], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, ttnn.DRAM_MEMORY_CONFIG)

held = [make(6144)]
held += [make(3072) for _ in range(3)]
print("ready", flush=True)
sys.stdin.read()
`

// TestLinesOfHelper: the real ttnn in a program in which one function makes all
// tensors. The legend names the lines that call it, with their tensors.
func TestLinesOfHelper(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "p150a"})
	python, dir := ttnn.Interpreter(t, ttnn.Newest), t.TempDir()
	script := filepath.Join(dir, "model.py")
	if err := os.WriteFile(script, []byte(oneHelper), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := n.host.Command(t.Context(), filepath.Join(bin, "ttmon-sim"), "open", "--", filepath.Join(bin, "ttmon"), "run", "--stacks", "--", python, script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TT_METAL_MOCK_CLUSTER_DESC_PATH="+sim.MockDescriptor, "TT_METAL_LOGS_PATH="+dir, "TT_METAL_CACHE="+filepath.Join(dir, "cache"),
		"HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "TT_LOGGER_LEVEL=error")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
	}
	b := open(t, desk, n.ticket())
	b.says("Signed in as root")
	b.visit(n.url + "/memory")
	b.until("the legend has both lines", `document.querySelectorAll(".bank .lines li").length === 2`)
	rows := eval[[]string](b, `[...document.querySelectorAll(".bank .lines li")].map(e => e.innerText.replaceAll(/\s+/g, " "))`)
	for i, want := range []string{"model.py:10 ", "model.py:9 "} {
		if !strings.HasPrefix(strings.TrimSpace(rows[i]), want) || !strings.Contains(rows[i], "bfloat16") {
			t.Errorf("row %d of the legend is %q, want %s with its tensor", i, rows[i], want)
		}
	}
	b.until("the treemap has both, too", `[...document.querySelectorAll(".tile.part")].map(e => e.textContent).filter(x => /model\.py:(9|10)/.test(x)).length === 2`)
	b.until("the process is listed by its command, without folders", `[...document.querySelectorAll(".panel .choice select")].some(e => /^python model\.py \(\d+\)$/.test(e.selectedOptions[0]?.textContent))`)
	b.shoot("lines-helper")
}
