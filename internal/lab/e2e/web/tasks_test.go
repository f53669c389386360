package web

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/book/failure/keep"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// user is a person with a question, who clicks.
type user struct {
	*tab
	clicks int
}

// click clicks on what JavaScript finds, once it is there. No question may take
// more than two clicks.
func (u *user) click(what, find string) {
	u.Helper()
	if u.clicks++; u.clicks > 2 {
		u.Errorf("%s is click %d", what, u.clicks)
	}
	u.until(what+" is there to be clicked", "!!("+find+")")
	eval[any](u.tab, "("+find+").click()")
}

// link is JavaScript for the link with a text.
func link(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("a")].find(e => e.textContent.trim() === %q)`, text)
}

// TestTaskOutOfL1: which line asked, which hole was the largest, who holds the rest.
func TestTaskOutOfL1(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "p150a"})
	n.stop()
	keep.Open(filepath.Join(n.dir, "ttmond", "failures"), keep.DefaultLimits, slog.New(slog.DiscardHandler)).Add(knownFailure())
	n.start(strings.TrimPrefix(n.url, "http://"))
	u := &user{tab: open(t, desk, n.ticket())}
	u.says("Signed in as root")
	u.click("Failures", link("Failures"))
	u.click("the failure", `document.querySelector("table.failures tbody a")`)
	u.says("model.py:131") // who asked
	u.says("the largest hole is 36 KiB too small")
	u.until("the hole is drawn, with the piece that is missing", `document.querySelector(".bank.missing .piece") !== null`)
	u.until("the lines that hold the rest are listed", `document.querySelector("table.holders tbody tr")?.innerText.includes("model.py:88")`)
}

// TestTaskWhichChip: which of 32 chips hangs or is throttled, since when, what else
// happened then.
func TestTaskWhichChip(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "galaxy-wormhole"})
	u := &user{tab: open(t, desk, n.url+"/")}
	u.until("there is a time to compare with", `fetch("/api/v1/range?metric=temperature.asic&step=1s&start=" + new Date(Date.now() - 60000).toISOString()).then(r => r.json()).then(a => a.series.find(s => s.device === 17)?.values.filter(v => v !== null).length >= 20)`)
	n.ctl("run", "name=train,devices=17,kind=metal,dram=2G")
	n.ctl("hang", "17") // at once: the events shown begin ten seconds before
	const row = `[...document.querySelectorAll(".troubles li")].find(e => e.querySelector(".name").textContent === "device 17")`
	u.until("the first row says which, what, since when and for whom", `(() => { const e = document.querySelector(".troubles li"); return e === (`+row+`) && e.querySelector(".what").textContent.startsWith("hung") &&
		/^\d+ (s|min)$/.test(e.querySelector(".held").textContent) && e.textContent.includes("heartbeat stopped") && e.querySelector(".who").textContent.includes("train"); })()`)
	u.until("31 others are not in it", `document.querySelectorAll(".troubles li").length === 1`)
	u.shoot("task-which-chip")
	u.click("since when", "("+row+`).querySelector(".held a")`)
	// A program that is noticed ten seconds after its start, on a busy machine, is said to have opened the device.
	u.until("the events around it are listed: its hang, and the program that had begun", `(() => { const text = [...document.querySelectorAll("ol.events")].map(e => e.innerText).join("\n"); return text.includes("device 17 is hung") && /train \(\d+\) (started on|opened) device 17/.test(text); })()`)
	u.until("what changed then is ranked, the device that hangs first", `(() => { const r = document.querySelector(".changed tbody tr"); return r !== null && r.children[1].textContent === "17"; })()`)
	u.shoot("task-which-chip-2")
}

// TestTaskWhichChipIsThrottled: which of 32 chips is throttled, by what, since when, and
// what else changed then.
func TestTaskWhichChipIsThrottled(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "galaxy-wormhole"})
	u := &user{tab: open(t, desk, n.ticket())}
	u.until("there is a time to compare with", `fetch("/api/v1/range?metric=temperature.asic&step=1s&start=" + new Date(Date.now() - 60000).toISOString()).then(r => r.json()).then(a => a.series.find(s => s.device === 11)?.values.filter(v => v !== null).length >= 10)`)
	n.ctl("run", "name=train,devices=11,load=1")
	u.says("train")
	n.ctl("ambient", "11", "75")
	n.ctl("advance", "2m")
	u.until("the only row says which, by what, for how long and for whom", `(() => { const rows = document.querySelectorAll(".troubles li"); const e = rows[0]; return rows.length === 1 && e.querySelector(".name").textContent === "device 11" &&
		e.querySelector(".what").textContent.startsWith("throttled by heat") && /^\d+ (s|min)$/.test(e.querySelector(".held").textContent) && e.querySelector(".who").textContent.includes("train"); })()`)
	u.click("since when", `document.querySelector(".troubles li .held a")`)
	u.until("the events around it say when it began", `/device 11 is throttled by heat/.test(document.querySelector("ol.events")?.innerText ?? "")`)
	u.until("what changed then has its state", `[...document.querySelectorAll(".changed tbody tr")].some(r => r.children[1].textContent === "11" && r.children[2].textContent.startsWith("throttled"))`)
	u.shoot("task-which-chip-throttled")
}

// TestTaskWho: who uses device 5, and how to reach them.
func TestTaskWho(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "6xn150"})
	n.ctl("run", "name=other,devices=0,kind=metal,dram=1G")
	pid := n.ctl("run", "name=serve,cmd=python3 serve.py,devices=5,kind=metal,dram=2G,user=1000")
	u := &user{tab: open(t, desk, n.ticket())}
	u.says("Signed in as root")
	u.says("serve.py")
	u.click("device 5", `[...document.querySelectorAll("a")].find(e => e.pathname.startsWith("/device/") && /^(device )?5\b/.test(e.textContent.trim()))`)
	u.until("the user, and where the program was started", fmt.Sprintf(`(() => { const e = document.querySelector(".ask"); return e !== null && e.children.length === 1 && /^%s belongs to \S+.*directory \//.test(e.textContent); })()`, pid))
	u.until("only its users are listed", `(() => { const text = document.querySelector("table.processes").innerText; return text.includes("serve.py") && !text.includes("other"); })()`)
	u.shoot("task-who")
}

// TestTaskLeaked: did last night's job leak?
func TestTaskLeaked(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	b := open(t, desk, n.url+"/")
	clean := n.ctl("run", "name=clean,devices=0,kind=metal,dram=1G")
	train := n.ctl("run", "name=train,devices=1,kind=metal,dram=2G,l1=8M")
	b.until("both are runs", `fetch("/api/v1/runs").then(r => r.json()).then(a => a.runs.length === 2 && a.runs.every(r => r.memory.dram?.peak_bytes >= 2**30))`)
	n.ctl("kill", clean)
	if out, err := n.host.Command(t.Context(), "/bin/kill", "-KILL", train).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.until("both have ended", `fetch("/api/v1/runs").then(r => r.json()).then(a => a.runs.every(r => r.end.kind !== "running"))`)
	u := &user{tab: b}
	u.click("Runs", link("Runs"))
	u.until("the run says it in the list of all", `[...document.querySelectorAll("table.runs tbody tr")].some(r => r.textContent.includes("left 2.0 GiB in DRAM") && r.textContent.includes("train"))`)
	u.clicks++ // a choice
	eval[any](b, `(() => { const s = [...document.querySelectorAll("label.choice")].find(e => e.textContent.includes("leaked")).querySelector("select"); s.value = "leaked"; s.dispatchEvent(new Event("change", {bubbles: true})); })()`)
	u.until("only those that left memory behind are listed", `(() => { const rows = [...document.querySelectorAll("table.runs tbody tr")]; return rows.length === 1 && rows[0].textContent.includes("left 2.0 GiB in DRAM, 8.0 MiB in L1") && rows[0].textContent.includes("train"); })()`)
	u.shoot("task-leaked")
}

// TestTaskTodayAgainstYesterday: how does today's run differ from yesterday's?
func TestTaskTodayAgainstYesterday(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	b := open(t, desk, n.ticket()) // runs are compared by their command lines
	for i, dram := range []string{"1G", "3G"} {
		pid := n.ctl("run", "name=train,cmd=python3 train.py,devices=1,kind=metal,dram="+dram)
		b.until("its peak is known", fmt.Sprintf(`fetch("/api/v1/runs").then(r => r.json()).then(a => a.runs.length === %d && a.runs.at(-1).memory.dram?.peak_bytes >= %s * 2**30)`, i+1, strings.TrimSuffix(dram, "G")))
		n.ctl("kill", pid)
		b.until("it has ended", `fetch("/api/v1/runs").then(r => r.json()).then(a => a.runs.every(r => r.end.kind !== "running"))`)
	}
	u := &user{tab: b}
	u.click("Runs", link("Runs"))
	u.click("today's run", link("r2"))
	u.says("2.0 GiB more DRAM at the peak")
	u.says("than r1")
	u.shoot("task-today")
}

// TestTaskTwoRuns: what is different between these two runs? Picked in the list, they are
// compared, the older one as before.
func TestTaskTwoRuns(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "p150a"})
	b := open(t, desk, n.ticket())
	for _, dram := range []string{"1G", "3G"} {
		pid := n.ctl("run", "name=train,cmd=python3 train.py,devices=0,kind=metal,dram="+dram)
		b.until("its peak is known", fmt.Sprintf(`fetch("/api/v1/runs").then(r => r.json()).then(a => a.runs.some(r => r.memory.dram?.peak_bytes >= %s * 2**30))`, strings.TrimSuffix(dram, "G")))
		n.ctl("kill", pid)
		b.until("it has ended", `fetch("/api/v1/runs").then(r => r.json()).then(a => a.runs.every(r => r.end.kind !== "running"))`)
	}
	eval[any](b, link("Runs")+".click()")
	b.until("each has how busy it was", `[...document.querySelectorAll("table.runs th")].some(e => e.textContent === "Busy")`)
	u := &user{tab: b}
	u.click("the newer one", `document.querySelectorAll("table.runs tbody input")[0]`)
	u.click("the older one", `document.querySelectorAll("table.runs tbody input")[1]`)
	u.until("the newer one is shown against the older one", `location.pathname === "/runs/r2" && new URLSearchParams(location.search).get("with") === "r1" && /DRAM/.test(document.querySelector(".verdict")?.textContent ?? "")`)
}
