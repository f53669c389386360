package text_test

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

// What is not known of any chip of a board is said once, in the board's row;
// a chip that differs from the others says so in its own.
func TestChipBusy(t *testing.T) {
	known, none := model.Work{Busy: model.Value(0.62), Window: 1}, model.NoWork
	for name, c := range map[string]struct {
		board, left, right model.Work
		want               [2]string // in the rows of the two chips
	}{
		"nothing is known": {none(model.WorkNotWatched), none(model.WorkNotWatched), none(model.WorkRemoteChip), [2]string{"", ""}},
		"one is known":     {known, known, none(model.WorkRemoteChip), [2]string{"62 %", "–"}},
		"both are known":   {known, known, model.Work{Busy: model.Value(0.0)}, [2]string{"62 %", "0 %"}},
		"one may be stuck": {none(model.WorkSilent), none(model.WorkSilent), none(model.WorkRemoteChip), [2]string{"silent", ""}},
		"never sampled":    {model.Work{}, model.Work{}, model.Work{}, [2]string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sample.Four()
			s.Devices = s.Devices[:1]
			d := &s.Devices[0]
			d.Board, d.Activity = model.Value("n300"), model.Activity{}
			d.Chips = []model.Chip{{Name: "L"}, {Name: "R", Remote: true}}
			d.Work, d.Chips[0].Work, d.Chips[1].Work = c.board, c.left, c.right
			o := utc
			o.Width = 100
			table := string(text.AppendTable(nil, s, o))
			for i, branch := range []string{"├ L", "└ R"} {
				_, row, found := strings.Cut(table, branch)
				row, _, _ = strings.Cut(row, "\n")
				fields := strings.Fields(row)
				got := strings.Join(fields[:max(0, len(fields)-2)], " ") // of its memory, the last two, nothing is known here
				if !found || got != c.want[i] {
					t.Errorf("row %q has %q, want %q:\n%s", branch, got, c.want[i], table)
				}
			}
		})
	}
}
