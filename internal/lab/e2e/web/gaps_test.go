//go:build web

package web

import (
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestGaps: the page of a process lists the longest times between its programs.
func TestGaps(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "p150a"})
	pid := n.ctl("run", "name=serve,cmd=python3 serve.py,devices=0,kind=ledger,dram=1G,work=matmul 20ms x5; idle 300ms; softmax 5ms; idle 120ms")
	b := open(t, desk, n.url+"/process/"+pid)
	b.says("Longest gaps between programs")
	b.until("the longest one has its length, its time and what ran before", `[...document.querySelectorAll("table.operations tr")].some(r => /^300 ms\d\d:\d\d:\d\dmatmul0$/.test(r.textContent))`)
	b.fitsWidth("the page of a process with gaps")
	b.shoot("gaps")
}
