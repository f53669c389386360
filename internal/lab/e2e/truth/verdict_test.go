package truth

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// verdict is what a figure is worth.
type verdict string

const (
	right   verdict = "right"
	bounded verdict = "bounded"
	missing verdict = "missing"
	wrong   verdict = "WRONG"
)

// judge holds a figure against the truth. Its doubts are those that a user
// finds beside it.
func judge(truth uint64, said model.Bytes, doubts []model.Doubt) (v verdict, why string) {
	n, bound, known := said.Best()
	worst := model.Exact
	for _, d := range doubts {
		worst = max(worst, d.Kind.Bound())
	}
	kinds := kindsOf(doubts)
	switch {
	case !known && said.Status() == model.Absent && worst == model.Exact:
		return wrong, "missing, and nothing says why"
	case !known && worst == model.Exact:
		return missing, said.Status().String()
	case !known:
		return missing, kinds
	case bound == model.Exact && n == truth:
		return right, ""
	case bound == model.Exact:
		return wrong, "without a mark"
	case worst < bound:
		return wrong, "marked, and nothing says why: " + kinds
	case bound == model.AtLeast && n > truth:
		return wrong, "more than there is"
	case n == truth:
		return right, kinds
	}
	return bounded, kinds
}

// kindsOf names the doubts that change a figure, each once.
func kindsOf(doubts []model.Doubt) string {
	var kinds []string
	for _, d := range doubts {
		if k := string(d.Kind); d.Kind.Bound() != model.Exact && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return strings.Join(kinds, " ")
}

// row is a line of the table.
type row struct {
	scenario, what, truth, said string
	verdict                     verdict
	why                         string
}

// table collects rows, from several tests at once.
type table struct {
	mu   sync.Mutex
	rows []row
}

var result table

func (t *table) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
}

// print writes the table: scenarios in order, rows as they came.
func (t *table) print(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.rows, func(a, b row) int { return strings.Compare(a.scenario, b.scenario) })
	lines := [][]string{{"scenario", "figure", "truth", "ttmon says", "verdict", "since"}}
	count := map[verdict]int{}
	scenarios := map[string]bool{}
	last := ""
	for _, r := range t.rows {
		name := r.scenario
		if name == last {
			name = ""
		}
		last = r.scenario
		scenarios[r.scenario] = true
		count[r.verdict]++
		lines = append(lines, []string{name, r.what, r.truth, r.said, string(r.verdict), r.why})
	}
	width := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	fmt.Fprintf(w, "%d scenarios, %d figures: %d right, %d bounded, %d missing with a reason, %d wrong\n",
		len(scenarios), len(t.rows), count[right], count[bounded], count[missing], count[wrong])
}

// figure adds a row for a number of bytes, and fails the test if it is wrong.
func (s *stage) figure(what string, truth uint64, said model.Bytes, doubts []model.Doubt) verdict {
	s.Helper()
	v, why := judge(truth, said, doubts)
	s.enter(row{what: what, truth: words.Bytes(truth), said: words.Figure(said), verdict: v, why: why})
	return v
}

// fact adds a row for something that is no number.
func (s *stage) fact(what, truth, said string) {
	s.Helper()
	v := right
	if truth != said {
		v = wrong
	}
	s.enter(row{what: what, truth: truth, said: said, verdict: v})
}

func (s *stage) enter(r row) {
	s.Helper()
	r.scenario = s.name
	result.add(r)
	if r.verdict == wrong {
		s.Errorf("%s: the truth is %s, ttmon says %s: %s", r.what, r.truth, r.said, r.why)
	}
}

func TestJudge(t *testing.T) {
	threads := []model.Doubt{{Kind: model.OtherThreads}}
	untracked := []model.Doubt{{Kind: model.NotAttached}}
	inferred := []model.Doubt{{Kind: model.ChipInferred}}
	for _, c := range []struct {
		name   string
		truth  uint64
		said   model.Bytes
		doubts []model.Doubt
		want   verdict
	}{
		{"equal", 5, model.ExactBytes(5), nil, right},
		{"nothing", 0, model.ExactBytes(0), inferred, right},
		{"unmarked", 5, model.ExactBytes(4), threads, wrong},
		{"at least", 5, model.BoundBytes(4, model.AtLeast), untracked, bounded},
		{"at least, and equal", 5, model.BoundBytes(5, model.AtLeast), untracked, right},
		{"at least more", 5, model.BoundBytes(6, model.AtLeast), untracked, wrong},
		{"at least, unexplained", 5, model.BoundBytes(4, model.AtLeast), inferred, wrong},
		{"unsure", 5, model.BoundBytes(900, model.Unsure), threads, bounded},
		{"unsure, explained by what hides something", 5, model.BoundBytes(900, model.Unsure), untracked, wrong},
		{"unsure, unexplained", 5, model.BoundBytes(5, model.Unsure), nil, wrong},
		{"missing", 5, model.NoBytes(model.Absent), untracked, missing},
		{"denied", 5, model.NoBytes(model.Denied), nil, missing},
		{"missing, unexplained", 5, model.NoBytes(model.Absent), inferred, wrong},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, why := judge(c.truth, c.said, c.doubts); got != c.want {
				t.Errorf("%s (%s), want %s", got, why, c.want)
			}
		})
	}
}
