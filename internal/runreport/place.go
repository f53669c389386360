package runreport

import (
	"os"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/sorted"

	"github.com/ttmon/ttmon/internal/callsite"
)

// Where is the line of the program that a place stands for: among others, the
// one that ByLine found.
func (p *Place) Where() (Frame, bool) {
	if p.line != nil {
		return *p.line, true
	}
	return callsite.Where(p.Stack)
}

// ByLine adds up places with the same tag and line, largest first. Of places that
// share a line it is the caller at which their stacks part.
func ByLine(places []Place) []Place {
	type key struct {
		tag  string
		line Frame
	}
	stacks := make([][]Frame, len(places))
	for i := range places {
		stacks[i] = places[i].Stack
	}
	lines := callsite.Lines(stacks)
	var out []Place
	at := map[key]int{}
	for n, p := range places {
		k := key{p.Tag, lines[n]}
		if len(p.Stack) > 0 {
			p.line = &lines[n]
		}
		p.Quarters = slices.Clone(p.Quarters)
		i, ok := at[k]
		if !ok {
			at[k] = len(out)
			out = append(out, p)
			continue
		}
		q := &out[i]
		q.add(p.Amount)
		q.Held.add(p.Held)
		q.Total.add(p.Total)
		q.Largest = max(q.Largest, p.Largest)
		q.Oldest = min(q.Oldest, p.Oldest)
		q.Quarters = addQuarters(q.Quarters, p.Quarters)
		q.Grew = q.Grew || p.Grew
	}
	sorted.Stable(out, larger)
	return out
}

// release names the release of tt-metal that a library belongs to, where it
// was installed as a Python package; otherwise it is empty.
func release(library string) string {
	before, _, ok := strings.Cut(library, "/site-packages/ttnn/")
	if !ok {
		return ""
	}
	names, err := os.ReadDir(before + "/site-packages")
	if err != nil {
		return ""
	}
	for _, n := range names {
		if v, ok := strings.CutPrefix(n.Name(), "ttnn-"); ok {
			if v, ok := strings.CutSuffix(v, ".dist-info"); ok {
				return "ttnn " + v
			}
		}
	}
	return ""
}
