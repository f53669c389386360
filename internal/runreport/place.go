package runreport

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Where is the line of the program that a place stands for: the innermost frame
// that is not in a library.
func (p *Place) Where() (Frame, bool) {
	if len(p.Stack) == 0 {
		return Frame{}, false
	}
	for _, foreign := range []func(string) bool{inLibrary, inTTNN, isNative} {
		for _, f := range p.Stack {
			if !foreign(f.File) && !isNative(f.File) {
				return f, true
			}
		}
	}
	return p.Stack[0], true
}

// inLibrary tells code that was installed from code that somebody works on.
func inLibrary(file string) bool {
	return strings.Contains(file, "/site-packages/") || strings.Contains(file, "/dist-packages/") ||
		strings.Contains(file, "/lib/python3.") || strings.HasPrefix(file, "<frozen ")
}

func inTTNN(file string) bool { return strings.Contains(file, "/ttnn/") }

func isNative(file string) bool {
	base := filepath.Base(file)
	return strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.")
}

// ByLine adds up places with the same tag and line, largest first.
func ByLine(places []Place) []Place {
	type key struct {
		tag, file, function string
		line                int
	}
	var out []Place
	at := map[key]int{}
	for _, p := range places {
		f, _ := p.Where()
		k := key{p.Tag, f.File, f.Function, f.Line}
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
	}
	slices.SortStableFunc(out, larger)
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
