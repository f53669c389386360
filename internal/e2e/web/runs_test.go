package web

import (
	"testing"

	"github.com/ttmon/ttmon/internal/sim"
)

// TestRuns: a program is found on the page after it has ended, alone, by its
// command, and against another.
func TestRuns(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	b := open(t, desk, n.url+"/runs")
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
	b.says("What it held")
	b.says("6.0 GiB") // on both chips
	b.says("more DRAM at the peak")
	b.says("than r1")
	b.until("its chart is drawn", `[...document.querySelectorAll("figure.chart")].some(f => f.textContent.includes("DRAM that it held") && f.querySelector("canvas"))`)
	b.fitsWidth("the page of a run")
	b.shoot("run")
	b.visit(n.url + "/runs/r2?with=r1")
	b.until("both are overlaid", `[...document.querySelectorAll("figure.chart")].some(f => f.textContent.includes("both from their start") && f.querySelectorAll(".legend li").length === 2)`)
	b.until("the report is one file without a script", `(() => {
		window.reports ??= [];
		if (!window.caught) {
			window.caught = true;
			const make = URL.createObjectURL;
			URL.createObjectURL = (blob) => { blob.text().then((x) => window.reports.push(x)); return make(blob); };
			[...document.querySelectorAll("button")].find((x) => x.textContent.trim() === "Report").click();
		}
		const r = window.reports[0] ?? "";
		return r.includes("run r2") && r.includes("data:image/png") && r.includes("<style>") && !r.includes("<script");
	})()`)

	b.visit(n.url + "/runs?by=job")
	b.says("No job of Slurm or Kubernetes used a device in this time.")
	b.visit(n.url + "/runs/r77")
	b.says("There is no run r77.")
}
