package text_test

import (
	"strings"
	"testing"

	selftest "github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/text"
)

// No line of a self-test is wider than the terminal, whatever is in it.
func TestSelftestWidth(t *testing.T) {
	long := strings.Repeat("long ", 12)
	r := &selftest.Report{Stage: selftest.Simulated, ProgramOn: "chip simulator libttsim_wormhole_b0.so", Simulated: true}
	for _, v := range []selftest.Verdict{selftest.Right, selftest.Bounded, selftest.Measured, selftest.Unknown, selftest.Failed, selftest.Wrong} {
		r.Add(selftest.Row{Part: selftest.Devices, What: long, Ours: long, Witness: long, By: long, Verdict: v, Note: strings.TrimSpace(long)})
	}
	for i := range 12 {
		r.Boards = append(r.Boards, selftest.Board{Name: "p150" + string(rune('a'+i)), Count: 1})
	}
	for _, width := range []int{80, 100, 145, 146, 200} {
		for line := range strings.Lines(string(text.AppendSelftest(nil, r, false, text.Options{Options: lines.Options{Width: width}}))) {
			if n := words.Width(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d columns on a terminal of %d: %q", n, width, line)
			}
		}
	}
}
