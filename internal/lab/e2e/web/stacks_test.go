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

// TestStacks: the real ttnn under ttmon run --stacks. The page shows, to its user,
// which lines hold how much: as a table, and as a flame graph that can be zoomed.
func TestStacks(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300"})
	dir := t.TempDir()
	j := ttnn.Play(t, ttnn.Options{Dir: dir, Descriptor: sim.MockDescriptor, Env: []string{"XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}, Command: func(name string, args ...string) *exec.Cmd {
		return n.host.Command(t.Context(), filepath.Join(bin, "ttmon-sim"), append([]string{"open", "--", filepath.Join(bin, "ttmon"), "run", "--stacks", "--", name}, args...)...)
	}})
	var pid int
	for _, step := range []ttnn.Step{
		{"do": "open", "mesh": []int{1, 1}},
		{"do": "alloc", "name": "a", "pool": "dram", "bytes": 1 << 30},
		{"do": "alloc", "name": "b", "pool": "dram", "bytes": 2 << 30},
		{"do": "alloc", "name": "c", "pool": "l1", "bytes": 8 << 20},
	} {
		r, err := j.Do(step)
		if err != nil {
			t.Fatal(err)
		}
		pid = r.PID
	}
	b := open(t, desk, n.ticket())
	b.says("Signed in as root")
	b.visit(fmt.Sprintf("%s/process/%d", n.url, pid))
	b.until("the flame graph has its frames", `document.querySelectorAll(".flame button").length > 2`)
	rows := func(table string) []string {
		return eval[[]string](b, `[...document.querySelectorAll(`+fmt.Sprintf("%q", table)+`)].map(e => e.innerText)`)
	}
	sites := rows(`[aria-label="Call sites"] tbody tr`)
	if len(sites) == 0 || !strings.Contains(sites[0], "3.0 GiB") || !strings.Contains(sites[0], "job.py") {
		t.Errorf("the first of the call sites is not the line that holds 3 GiB: %q", sites)
	}
	whole := rows(".flame button")
	if !strings.Contains(whole[0], "3.0 GiB") {
		t.Errorf("the flame graph stands on %q", whole[0])
	}
	b.accessible("a process with call sites", axe(t))
	b.shoot("stacks")
	eval[any](b, `[...document.querySelectorAll(".flame button")].at(-1).click()`)
	b.until("a frame is zoomed to", fmt.Sprintf(`document.querySelectorAll(".flame button").length < %d`, len(whole)))
	eval[any](b, `document.querySelector(".flame button").click()`)
	b.until("all of it is there again", fmt.Sprintf(`document.querySelectorAll(".flame button").length === %d`, len(whole)))
	b.visit(n.url + "/memory")
	b.until("the treemap has the lines", `[...document.querySelectorAll(".tile.part")].some(e => e.textContent.includes("job.py"))`)
	b.shoot("stacks-memory")
	// Anybody else sees the sums, and no line of the program.
	other := open(t, desk, fmt.Sprintf("%s/process/%d", n.url, pid))
	other.says("you see what any user of this host sees")
	other.says("3.0 GiB")
	if text := eval[string](other, `document.body.innerHTML`); strings.Contains(text, "class=\"flame\"") || eval[int](other, `document.querySelectorAll(".bank, [aria-label='Call sites']").length`) > 0 {
		t.Error("call sites are shown to anybody")
	}
}
