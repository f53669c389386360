package web

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/runs/keep"
)

// TestRuns: a program is found on the page after it has ended, alone, by its
// command, and against another.
func TestRuns(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	b := open(t, desk, n.ticket()) // without one, command lines are not shown
	b.visit(n.url + "/runs")
	first := n.ctl("run", "name=train,cmd=python3 train.py,devices=0,kind=metal,dram=2G")
	b.says("python3 train.py")
	b.says("running")
	b.shoot("runs")
	n.ctl("kill", first)
	b.until("it has ended, and is still there", `[...document.querySelectorAll("table.runs tr")].some(r => r.textContent.includes("python3 train.py") && !r.textContent.includes("running"))`)
	second := n.ctl("run", "name=train,cmd=python3 train.py,devices=0,kind=metal,dram=3G")
	b.until("the second one is there", `document.querySelectorAll("table.runs tbody tr").length === 2`)
	n.ctl("kill", second)
	b.until("both have ended", `[...document.querySelectorAll("table.runs tbody tr")].every(r => !r.textContent.includes("running"))`)

	b.visit(n.url + "/runs/r2")
	b.says("run r2")
	b.says("Memory")
	b.says("6.0 GiB") // on both chips
	b.says("more DRAM at the peak")
	b.says("than r1")
	b.until("its chart is drawn", `[...document.querySelectorAll("figure.chart")].some(f => f.textContent.includes("DRAM that it held") && f.querySelector("canvas"))`)
	b.fitsWidth("the page of a run")
	b.shoot("run")
	b.visit(n.url + "/runs/r2?with=r1")
	b.until("both are overlaid", `[...document.querySelectorAll("figure.chart")].some(f => f.textContent.includes("both from their start") && f.querySelectorAll(".legend li").length === 2)`)
	b.until("its axis is the time since the start, not the time of one of them", `(() => { const f = [...document.querySelectorAll("figure.chart")].find(f => f.textContent.includes("DRAM that they held"));
		const plot = f.querySelector(".plot"); plot.focus(); plot.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
		return /0:\d\d since the start/.test(plot.getAttribute("aria-valuetext")) })()`)
	b.shoot("runs-overlaid")
	b.keepReport("run r2")

	b.visit(n.url + "/runs?by=job")
	b.says("No job of Slurm or Kubernetes used a device in this time.")
	b.visit(n.url + "/runs/r77")
	b.says("There is no run r77.")
}

// keepReport saves the view as a report, which is one file without a script, with
// pictures and no links into the page.
func (b *tab) keepReport(title string) {
	b.Helper()
	b.clickReport()
	b.until("the report is one file without a script", `(() => {
		const r = window.reports[0] ?? "";
		return r.includes("`+title+`") && r.includes("data:image/png") && r.includes("<style>") && !r.includes("<script") && !r.includes("href=") && !r.includes("<button") && !r.includes("Compare with");
	})()`)
	if dir := os.Getenv("PAGE_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(title, " ", "-")+".html"), []byte(eval[string](b, `window.reports[0]`)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// clickReport collects in window.reports what is saved from now on.
func (b *tab) clickReport() {
	b.Helper()
	eval[any](b, `(() => {
		const make = window.makeURL ??= URL.createObjectURL;
		window.reports = [];
		URL.createObjectURL = (blob) => { blob.text().then((x) => window.reports.push(x)); return make(blob); };
		[...document.querySelectorAll("button")].find((x) => x.textContent.trim() === "Report").click();
	})()`)
}

// reportWithoutHistory: a report of a run whose charts get no answer says so, and
// there is none of a view that was left while it waited for them.
func (b *tab) reportWithoutHistory(run string) {
	b.Helper()
	view := func(path string) {
		eval[any](b, fmt.Sprintf(`history.pushState(null, "", %q); dispatchEvent(new PopStateEvent("popstate"))`, path))
	}
	eval[any](b, `(() => { const ask = window.fetch; window.fetch = (url, o) => String(url).includes("/range?") ? new Promise(() => {}) : ask(url, o); })()`)
	view("/runs")
	b.until("the list", `!!document.querySelector("table.runs")`)
	view("/runs/" + run)
	b.says("Power of its devices")
	b.clickReport()
	view("/runs")
	b.until("the list again", `!!document.querySelector("table.runs")`)
	if n := eval[int](b, `new Promise((done) => setTimeout(() => done(window.reports.length), 500))`); n != 0 {
		b.Errorf("another view was saved as the report of the run")
	}
	view("/runs/" + run)
	b.says("Power of its devices")
	b.clickReport()
	b.until("the report says what it lacks", `(window.reports[0] ?? "").includes("not loaded when this was saved")`)
}

// TestRunPage: the page of a run says at least what ttmon runs says of one: its
// operations, its longest gaps, its failure, who shared its devices, what it left, and
// its lines of code, or why they are not known.
func TestRunPage(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	address := strings.TrimPrefix(n.url, "http://")
	n.stop()
	n.keepRun(workingRun())
	n.start(address)
	b := open(t, desk, n.ticket())
	b.says("Signed in as root")
	b.visit(n.url + "/runs/r7")
	for _, text := range []string{
		"out of DRAM, exit 1", "Operations that took most time", "ScaledDotProductAttentionDecode", "Longest gaps between programs", "95 s", "12m00s",
		"gaps are not certain: ", "≥2 failed, the last: out of DRAM", "990 MHz", "r3", "and others", "process 4242 left 2.1 MiB in L1",
		"lines of code are not known: only a program that runs under ttmon run --stacks reports which line allocates",
	} {
		b.says(text)
	}
	b.until("the failure is linked", `!!document.querySelector('a[href$="/failures/f12"]')`)
	b.fitsWidth("the page of a run with all that can be known")
	b.shoot("run-whole")
	b.keepReport("run r7")
	b.reportWithoutHistory("r7")

	pid := n.ctl("run", "name=serve,cmd=python3 serve.py,devices=1,kind=ledger,dram=8G,blocks=8,l1=30M,tags=weights/kv_cache/scores/scores")
	b.until("it is a run", `fetch("/api/v1/runs").then(r => r.json()).then(a => a.runs.some(r => r.id === 8 && r.memory.dram.peak_bytes >= 8 * 2**30))`)
	n.ctl("kill", pid)
	b.visit(n.url + "/runs/r8")
	b.says("Lines of code at the peak")
	b.says(`blocks tagged "kv_cache", no line recorded`)
	b.shoot("run-lines")

	small := open(t, telephone, n.url+"/runs/r7")
	small.says("Operations that took most time")
	small.says("lines of code are shown only to the user of the run and to root")
	small.until("its charts are drawn", `document.querySelectorAll("figure.chart canvas").length === 3`)
	small.fitsWidth("the page of a run on a telephone")
	small.shoot("run-390")
}

// keepRun writes a run where ttmon-server keeps them.
func (n *node) keepRun(r runs.Run) {
	n.Helper()
	store := keep.OpenStore(filepath.Join(n.dir, "state", "runs"), 0, 0)
	defer store.Close()
	if err := store.Append([]runs.Run{r}, time.Now()); err != nil {
		n.Fatal(err)
	}
}

// workingRun is a run of which all is known.
func workingRun() runs.Run {
	end := time.Now().Add(-12 * time.Minute)
	start := end.Add(-38 * time.Minute)
	one := 1
	pool := func(n uint64) runs.Pool {
		return runs.Pool{Peak: n, PeakBound: "at_least", PeakAt: start.Add(3 * time.Minute), Mean: float64(n) * 0.8, MeanBound: "exact", Seconds: 2200, Held: n / 2}
	}
	stat := func(v float64) *runs.Stat { return &runs.Stat{Mean: v, Max: v * 1.3, MaxAt: start, Seconds: 2270} }
	pools := map[string]runs.Pool{"dram": pool(18 << 30), "l1": pool(60 << 20)}
	d := runs.Device{
		Index: 0, BusID: "0000:01:00.0", Board: "n300", Open: 2280, Shared: 600, Pools: pools,
		Chips: []runs.Chip{{ID: "1", Name: "L", Pools: map[string]runs.Pool{"dram": pool(12 << 30)}}, {ID: "2", Name: "R", Pools: map[string]runs.Pool{"dram": pool(6 << 30)}}},
		Power: stat(90), Energy: 205_200, Temperature: stat(61), Clock: stat(990), Activity: stat(0.7), PCIe: &runs.PCIe{ToDevice: 5 << 30, FromDevice: 1 << 20, Bound: "exact"},
		Trouble: map[model.ConditionKind]float64{model.ConditionThrottled: 41},
		Work: []runs.Work{{
			PID: 4242, StartTicks: 77, Chip: "1", Name: "L", Busy: 1700, Programs: 4_290_000, Bound: "exact", Longest: 0.9, Gap: 95,
			Operations: []runs.Operation{{Name: "MatmulDeviceOperation", Calls: 2_100_000, Seconds: 1200}, {Name: "LayerNormDeviceOperation", Calls: 2_100_000, Seconds: 420}, {Name: "ScaledDotProductAttentionDecodeDeviceOperation", Calls: 90_000, Seconds: 80}},
			Gaps:       []runs.Gap{{Seconds: 95, End: start.Add(12 * time.Minute), After: "LayerNormDeviceOperation"}, {Seconds: 0.041, End: start.Add(31 * time.Second)}}, GapsCause: model.GapsProcesses,
		}},
	}
	return runs.Run{
		ID: 7, Host: "lab-3", Who: runs.Who{UID: 0, User: "root", Name: "python3", Command: "python3 serve.py --model llama-3.1-70b --batch 32 --max-seq-len 8192", Release: "0.81.1", Dir: "/srv/models"},
		Start: start, Seen: start, Last: end, End: runs.Ending{Kind: runs.Exited, At: end, Code: &one, NoRoom: true}, Observed: 2270, Unseen: 10,
		Processes: []runs.Process{{PID: 4242, StartTicks: 77, Name: "python3"}, {PID: 4243, StartTicks: 78, Parent: 4242, Name: "python3"}},
		Pools:     pools, Devices: []runs.Device{d}, Failures: &runs.Failures{Count: 2, Last: end, ID: "f12", Pool: "dram"},
		Neighbours: []runs.Neighbour{{ID: 3, UID: 1000, User: "anna", Name: "python3", Devices: []int{0}, Seconds: 600}}, MoreNeighbours: true,
		Left: []runs.Left{{PID: 4242, Region: "/dev/shm/tt_device_1_memory", Device: 0, Bytes: map[string]uint64{"l1": 2_202_009}, Bound: "exact"}},
	}
}
