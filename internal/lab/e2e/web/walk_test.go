//go:build web

package web

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

const limit = 30 * time.Minute

// looks are all widths and colours.
var looks = map[string]look{
	"390-light": telephone, "390-dark": {390, 844, true},
	"1280-light": desk, "1280-dark": {1280, 900, true},
	"2560-light": {2560, 1400, false}, "2560-dark": {2560, 1400, true},
}

// axe is axe-core's source.
func axe(t *testing.T) string {
	t.Helper()
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "web/node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatalf("axe-core is not installed: run npm ci in web/ (%v)", err)
	}
	return string(b)
}

// accessible lets axe-core look: nothing may be wrong.
func (b *tab) accessible(where, source string) {
	b.Helper()
	eval[any](b, source+";0")
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`axe.run(document, {resultTypes: ["violations"]}).then(r =>
		r.violations.map(v => v.impact + " " + v.id + ": " + v.help + " at " + v.nodes.slice(0, 3).map(n => n.target + " " + (n.any[0]?.message ?? "")).join("; ")))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range found {
		b.Errorf("%s: %s", where, f)
	}
}

// TestWalk shows every view on hosts of three sizes at every width and in every
// colour.
func TestWalk(t *testing.T) {
	source := axe(t)
	for _, boards := range []string{"p150a", "4xn300,4xp150a", "galaxy-wormhole"} {
		t.Run(boards, func(t *testing.T) {
			n := newNode(t, sim.Options{Boards: boards, UMDDump: true})
			last := map[string]string{"p150a": "0", "4xn300,4xp150a": "5", "galaxy-wormhole": "21"}[boards]
			pid := n.ctl("run", "name=llama,cmd=python3 serve.py --model llama-70b,devices=0,load=0.8,kind=metal,dram=9G,l1=30M,cb=2M,moves")
			bench := "name=bench,cmd=python3 bench.py --batch 32,devices=" + last + ",load=0.4,kind=metal,dram=512M,l1=8M"
			if boards != "p150a" {
				if several, _ := hermetic.OtherUsers(); several {
					bench += ",user=1000"
				}
				n.ctl("hang", "3")
			}
			n.ctl("run", bench)
			time.Sleep(10 * time.Second) // so that charts have lines
			for name, l := range looks {
				t.Run(name, func(t *testing.T) { walk(t, n, l, pid, strings.ReplaceAll(boards, ",", "+")+"-%s-"+name, source) })
			}
		})
	}
}

// walk goes through all views in one tab; picture is the name of their pictures.
func walk(t *testing.T, n *node, l look, pid, picture, source string) {
	b := open(t, l, n.url+"/")
	for view, path := range map[string]string{
		"overview": "/", "device": "/device/0?range=5m", "processes": "/processes?tree=1", "process": "/process/" + pid + "?range=5m",
		"memory": "/memory", "topology": "/topology?by=power", "events": "/events?range=5m",
	} {
		b.visit(n.url + path)
		b.until("there is a host", `document.querySelector(".fresh.live") !== null`)
		time.Sleep(1500 * time.Millisecond) // charts and maps are asked for
		b.fitsWidth(path)
		b.accessible(path, source)
		b.shoot(fmt.Sprintf(picture, view))
	}
}

// TestFleetLooks: the page of a fleet at every width and in every colour, with a
// Galaxy in which a chip hangs.
func TestFleetLooks(t *testing.T) {
	source := axe(t)
	good := newNode(t, sim.Options{Boards: "4xn150"})
	bad := newNode(t, sim.Options{Boards: "galaxy-wormhole"})
	bad.ctl("hang", "17")
	url := serveFleet(t, programs.Prometheus(t, strings.TrimPrefix(good.url, "http://"), strings.TrimPrefix(bad.url, "http://")))
	for name, l := range looks {
		t.Run(name, func(t *testing.T) {
			b := open(t, l, url)
			b.until("the hang is known", `document.querySelector(".fleetsums")?.textContent.includes("1 hung") && document.querySelectorAll(".hostdetail li").length === 32`)
			b.fitsWidth("the fleet")
			b.accessible("the fleet", source)
			b.shoot("fleet-" + name)
		})
	}
}

// TestHighContrast: the third set of colours passes, too.
func TestHighContrast(t *testing.T) {
	source := axe(t)
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	n.ctl("hang", "1")
	b := open(t, desk, n.url+"/")
	b.says("hung")
	for range 3 {
		b.press("c")
	}
	b.until("the colours are of high contrast", `document.documentElement.dataset.theme === "contrast"`)
	b.accessible("/ in high contrast", source)
	b.shoot("contrast")
	b.press("?")
	b.accessible("the keys", source)
}

// TestExactBlocks: the real ttnn's allocator on the page, block by block, with
// what would fit; and to others only the sums.
func TestExactBlocks(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300"})
	j := ttnn.Play(t, ttnn.Options{Dir: t.TempDir(), Descriptor: sim.MockDescriptor, Command: func(name string, args ...string) *exec.Cmd {
		return n.host.Command(t.Context(), filepath.Join(bin, "ttmon-sim"), append([]string{"open", "--", name}, args...)...)
	}})
	var pid int
	for _, step := range []ttnn.Step{
		{"do": "open", "mesh": []int{1, 1}},
		{"do": "alloc", "name": "a", "pool": "dram", "bytes": 1 << 30},
		{"do": "alloc", "name": "b", "pool": "dram", "bytes": 512 << 20},
		{"do": "alloc", "name": "c", "pool": "dram", "bytes": 2 << 30},
		{"do": "alloc", "name": "d", "pool": "l1", "bytes": 8 << 20},
		{"do": "free", "name": "b"},
	} {
		r, err := j.Do(step)
		if err != nil {
			t.Fatal(err)
		}
		pid = r.PID
	}
	b := open(t, desk, fmt.Sprintf("%s/process/%d", n.url, pid))
	b.says("you see what any user of this host sees")
	if eval[int](b, `document.querySelectorAll(".bank").length`) > 0 {
		t.Error("blocks are shown to anybody")
	}
	b.visit(n.ticket())
	b.visit(fmt.Sprintf("%s/process/%d?fit=512M", n.url, pid))
	b.until("the bank is drawn, exact", `[...document.querySelectorAll(".bank figcaption")].some(e => e.textContent.includes("DRAM") && e.textContent.includes("exact"))`)
	b.says("would 512 MiB fit? yes")
	b.shoot("exact")
	b.visit(fmt.Sprintf("%s/process/%d?fit=1,1,2048,512&shard=height:8&pool=l1", n.url, pid))
	b.until("the box has the shard", `document.querySelector(".fit input.shard")?.value === "height:8"`)
	b.says("in shards of 256x512")
	b.visit(n.url + "/memory")
	b.until("the bank is on the memory page", `document.querySelectorAll(".bank canvas").length > 0`)
	b.accessible("/memory", axe(t))
	b.shoot("exact-memory")
}
