package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

const (
	evilName = `<script>x()`
	evilCmd  = `<img src=x onerror=alert(2)> "quoted" & 'more'`
)

// TestPage walks the views of one host: what they must show, that names of
// processes stay text, keys, permalinks, a fault, the past, and a ttmond that
// stops and returns.
func TestPage(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	n.ctl("run", "name=llama,cmd=python3 serve.py --model llama-70b,devices=0,load=0.8,kind=metal,dram=9G,l1=30M")
	evil := n.ctl("run", "name="+evilName+",cmd="+evilCmd+",devices=1,kind=metal,dram=512M")
	n.ctl("run", "name=esc,cmd=\x1b[31mred\x1b]0;title\x07 prog,devices=1,kind=metal,dram=64M")
	b := open(t, desk, n.url+"/")
	b.says("n300")
	b.says("serve.py --model llama-70b")
	t.Run("names are text", func(t *testing.T) { b.TB = t; namesAreText(t, b, n, evil) })
	t.Run("figures", func(t *testing.T) { b.TB = t; figures(t, b) })
	t.Run("keys", func(t *testing.T) { b.TB = t; keys(t, b, n) })
	t.Run("charts", func(t *testing.T) { b.TB = t; charts(t, b, n) })
	t.Run("narrow", func(t *testing.T) { narrow(t, n, evil) })
	t.Run("fault", func(t *testing.T) { b.TB = t; fault(t, b, n) })
	t.Run("past", func(t *testing.T) { b.TB = t; past(t, b, n) })
	t.Run("gone", func(t *testing.T) { b.TB = t; gone(t, b, n, evil) })
	t.Run("away", func(t *testing.T) { b.TB = t; away(t, b, n) })
}

func namesAreText(t *testing.T, b *tab, n *node, pid string) {
	b.says(evilCmd)
	b.says(`\x1b[31mred`)
	if eval[int](b, `document.querySelectorAll("main img, main script").length`) > 0 {
		t.Error("the name of a process has become part of the page")
	}
	b.visit(n.url + "/process/" + pid)
	b.says("process " + pid)
	b.says(evilCmd)
	b.visit(n.url + "/memory")
	b.says("Who holds what")
	if eval[int](b, `document.querySelectorAll("main img, main script").length`) > 0 {
		t.Error("the name of a process has become part of the page")
	}
	b.visit(n.url + "/processes?filter=" + "serve.py")
	b.until("the filter holds", `document.querySelectorAll("table.processes tbody tr").length === 1`)
}

// figures: sizes on the page are written as ttmon writes them.
func figures(t *testing.T, b *tab) {
	for _, v := range []uint64{0, 1, 1023, 1024, 1535, 10 << 10, 1 << 20, 999 << 20, 10<<30 + 7, 99<<30 + 1<<29, 100 << 30, 1 << 40, 3 << 45} {
		got := eval[string](b, "window.ttmon.bytes("+strconv.FormatUint(v, 10)+")")
		if want := words.Bytes(v); got != want {
			t.Errorf("%d bytes are %q on the page, %q in ttmon", v, got, want)
		}
	}
	for bound, want := range map[model.Bound]string{model.Exact: "", model.AtLeast: "≥", model.Unsure: "~"} {
		if got := eval[string](b, "window.ttmon.markOf("+strconv.Itoa(int(bound))+")"); got != want {
			t.Errorf("the mark of %v is %q, want %q", bound, got, want)
		}
	}
}

func keys(t *testing.T, b *tab, n *node) {
	b.visit(n.url + "/")
	b.until("it is live", `document.querySelector(".fresh.live") !== null`)
	for key, path := range map[string]string{"p": "/processes", "m": "/memory", "t": "/topology", "e": "/events", "o": "/"} {
		b.press(key)
		b.until(key+" leads to "+path, `location.pathname === "`+path+`"`)
	}
	b.press("1")
	b.until("1 leads to device 1", `location.pathname.startsWith("/device/") && document.querySelector("h2").textContent.includes("device 1")`)
	b.press("?")
	b.until("the keys are listed", `document.querySelector("dialog[open]") !== null`)
	b.press("\x1b")
	b.until("they are gone", `document.querySelector("dialog[open]") === null`)
	b.press("/")
	b.until("the search has the focus", `document.activeElement.type === "search"`)
	eval[any](b, `document.activeElement.select()`) // this driver types the slash as well
	if err := chromedp.Do(b.ctx, chromedp.SendKeys("input[type=search]", "llama")); err != nil {
		t.Fatal(err)
	}
	b.until("the filter is in the address", `new URLSearchParams(location.search).get("filter") === "llama"`)
	b.press("\r")
	b.until("Enter leads to processes", `location.pathname === "/processes" && document.querySelectorAll("table.processes tbody tr").length === 1`)
}

func charts(t *testing.T, b *tab, n *node) {
	b.visit(n.url + "/device/0?range=5m&metric=voltage.core")
	b.until("charts are drawn", `document.querySelectorAll(".chart canvas").length >= 6`)
	b.until("a chart has a value", `[...document.querySelectorAll(".chart .legend b")].some(e => /W$/.test(e.textContent))`)
	b.says("voltage.core")
	// A drag over a chart is in the address.
	at := eval[[]float64](b, `(() => { const over = document.querySelector(".chart .u-over"); over.scrollIntoView({block: "center"}); const r = over.getBoundingClientRect(); return [r.left, r.top, r.width]; })()`)
	if err := chromedp.Do(b.ctx, chromedp.DragAndDropXY(at[0]+40, at[1]+20, at[0]+at[2]-20, at[1]+20, 8)); err != nil {
		t.Fatal(err)
	}
	b.until("the zoom is in the address", `location.search.includes("from=") && location.search.includes("to=")`)
	b.says("zoomed")
	if got := eval[string](b, `(() => { let text = ""; const click = HTMLAnchorElement.prototype.click; HTMLAnchorElement.prototype.click = function () { text = this.download; };
		[...document.querySelectorAll(".chart button")].find(e => e.textContent === "CSV").click(); HTMLAnchorElement.prototype.click = click; return text; })()`); !strings.HasPrefix(got, "testhost ASIC Temperature 20") || !strings.HasSuffix(got, ".csv") {
		t.Errorf("CSV is saved as %q, want host, title and date", got)
	}
}

// narrow: nothing scrolls sideways on a telephone.
func narrow(t *testing.T, n *node, pid string) {
	b := open(t, telephone, n.url+"/")
	for _, path := range []string{"/", "/device/0", "/processes", "/process/" + pid, "/memory", "/topology", "/events", "/fleet"} {
		b.visit(n.url + path)
		b.until("there is a host", `document.querySelector("h1").textContent !== "ttmon"`)
		b.fitsWidth(path)
	}
}

func fault(t *testing.T, b *tab, n *node) {
	b.visit(n.url + "/")
	n.ctl("hang", "1")
	b.until("the card says hung", `[...document.querySelectorAll(".card .state")].some(e => e.textContent.includes("hung"))`)
	b.until("trouble is said at the top", `[...document.querySelectorAll(".troubles li.critical")].some(e => e.textContent.includes("device 1"))`)
	b.visit(n.url + "/events")
	b.until("the event is listed", `[...document.querySelectorAll(".events li")].some(e => e.textContent.includes("device 1"))`)
	n.ctl("unhang", "1")
	b.visit(n.url + "/")
	b.until("the card says ok again", `[...document.querySelectorAll(".card .state")].every(e => e.textContent.includes("ok"))`)
}

// past: the page as it was while the chip hung.
func past(t *testing.T, b *tab, n *node) {
	b.visit(n.url + "/events?level=critical")
	hung := `[...document.querySelectorAll(".events li.critical")].find(e => e.textContent.includes("device 1 is hung"))`
	b.until("the event is listed", hung+" !== undefined")
	eval[any](b, hung+`.querySelector("button").click()`)
	b.until("the moment is in the address", `new URLSearchParams(location.search).has("at")`)
	b.press("o")
	b.until("the card says hung", `[...document.querySelectorAll(".card .state")].some(e => e.textContent.includes("hung"))`)
	b.until("the page says that it shows the past", `document.querySelector(".fresh.past") !== null && document.querySelector(".timebar input[type=range]") !== null`)
	b.press("l")
	b.until("it is live again", `document.querySelector(".fresh.live") !== null && [...document.querySelectorAll(".card .state")].every(e => e.textContent.includes("ok"))`)
}

// gone: a process that has ended is in the moments in which it ran, which the
// slider leads to, and in no later one.
func gone(t *testing.T, b *tab, n *node, pid string) {
	before := eval[int](b, `Math.floor(Date.now() / 1000) - 5`) // what is a second old is now, to the slider
	at := fmt.Sprintf(`"at=" + encodeURIComponent(new Date(%d000).toISOString())`, before)
	b.visit(n.url + "/processes")
	b.until("it runs", `[...document.querySelectorAll("table.processes a")].some(e => e.textContent === "`+pid+`")`)
	b.until("it is in a moment that is kept", `fetch("/api/v1/past?" + `+at+`).then(r => r.json()).then(s => s.processes.some(p => p.pid === `+pid+`))`)
	n.ctl("kill", pid)
	b.until("it is gone", `![...document.querySelectorAll("table.processes a")].some(e => e.textContent === "`+pid+`")`)
	b.until("the way back is open", `document.querySelector(".timebar input[type=range]") !== null || (document.querySelector("[aria-label='Look back in time']").click(), false)`)
	eval[any](b, fmt.Sprintf(`(() => { const e = document.querySelector(".timebar input[type=range]"); e.value = %d; e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); })()`, before))
	b.until("the moment is in the address", `new URLSearchParams(location.search).has("at")`)
	b.until("it runs at that moment", `document.querySelector(".fresh.past") !== null && [...document.querySelectorAll("table.processes a")].some(e => e.textContent === "`+pid+`")`)
	if eval[bool](b, fmt.Sprintf(`document.body.innerText.includes(%q)`, evilCmd)) {
		t.Error("a viewer without a ticket sees the command line of a process that has ended")
	}
	b.press("m")
	b.until("the memory is that of the moment, too", `[...document.querySelectorAll(".tile.process")].some(e => e.href.includes("/process/`+pid+`"))`)
	b.press("l")
	b.until("now it is not there", `document.querySelector(".fresh.live") !== null && ![...document.querySelectorAll(".tile.process")].some(e => e.href.includes("/process/`+pid+`"))`)
}

// away: nothing old passes for new while ttmond is gone.
func away(t *testing.T, b *tab, n *node) {
	b.visit(n.url + "/")
	b.until("it is live", `document.querySelector(".fresh.live") !== null`)
	frozen := n.server.Process
	t.Cleanup(func() { _ = frozen.Signal(syscall.SIGCONT) })
	if err := frozen.Signal(syscall.SIGSTOP); err != nil { // the connection stands, and nothing comes
		t.Fatal(err)
	}
	b.until("mark, word and banner agree that it is lost", `document.querySelector(".fresh.lost")?.innerText.startsWith("lost") && document.querySelector(".banner.bad") !== null`)
	if err := frozen.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	b.until("it is live after that", `document.querySelector(".fresh.live") !== null && document.querySelector(".banner.bad") === null`)
	listen := strings.TrimPrefix(n.url, "http://")
	n.stop()
	b.until("what is old is greyed out", `document.querySelector(".shell.stale") !== null && getComputedStyle(document.querySelector("main")).opacity < 1`)
	b.until("its age is said", `/values are \d+ s old/.test(document.querySelector(".banner.bad").textContent)`)
	n.start(listen)
	b.until("it is live again", `document.querySelector(".shell.stale") === null && document.querySelector(".fresh.live") !== null`)
}

// TestViewers: a viewer without a ticket sees no blocks and no more than any
// user; with one what its user sees. Other origins and names get nothing.
func TestViewers(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "p150a"})
	b := open(t, desk, n.url+"/")
	b.says("you see what any user of this host sees")
	b.visit(n.ticket())
	b.says("Signed in as root")
	if foot := eval[string](b, `document.querySelector("footer span").textContent`); foot != "Signed in as root" {
		t.Errorf("the footer says %q", foot)
	}
	if eval[string](b, `location.hash`) != "" {
		t.Error("the ticket is still in the address")
	}
	b.visit(n.url + "/processes")
	b.says("Signed in as root") // the session lasts
	session := eval[string](b, `sessionStorage.getItem("ttmon-session")`)
	eval[bool](b, `(document.querySelector("button.signout").click(), true)`)
	b.says("you see what any user of this host sees")
	b.until("there is nothing to sign out of", `document.querySelector("button.signout") === null`)
	b.until("ttmond has forgotten the session", fmt.Sprintf(`fetch("/api/v1/me", {headers: {"X-Ttmon-Session": %q}}).then(r => r.json()).then(me => me.sees === "public")`, session))
	for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1.evil.example"} {
		r, err := http.NewRequest(http.MethodGet, n.url+"/api/v1/snapshot", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		client := &http.Client{Timeout: time.Minute}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("asked as %s it answers %d", host, answer.StatusCode)
		}
		if answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Error("other origins may read")
		}
	}
}

// TestGalaxy: 32 devices are cells in their trays.
func TestGalaxy(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "galaxy-wormhole", UMDDump: true})
	b := open(t, desk, n.url+"/")
	b.until("there are 32 cells in four trays", `document.querySelectorAll("a.cell").length === 32 && document.querySelectorAll(".tray").length === 4`)
	b.fitsWidth("/")
	b.shoot("galaxy")
	b.visit(n.url + "/topology?by=power")
	b.until("links are drawn", `document.querySelectorAll(".graph .spot").length === 32`)
	n.ctl("run", "name=pair,devices=0+1,kind=metal,dram=2G")
	const dram = `(document.querySelector("td.c-dram")?.textContent ?? "")`
	b.visit(n.url + "/processes")
	b.until("a process has the sum of its devices", dram+`.endsWith("4.0 GiB")`)
	b.visit(n.url + "/device/0")
	b.until("on the page of one of them it has what it holds there", dram+`.endsWith("2.0 GiB")`)
	b.visit(n.url + "/memory")
	b.until("there is a tile for each", `document.querySelectorAll(".tile.device").length === 32`)
}
