package filter

import (
	"slices"
	"strings"
)

// Field is something a row can be asked for.
type Field struct {
	Name    string
	Aliases []string
	Kind    Kind
	Help    string // a few words
}

// Kind is how the values of a field are written and compared.
type Kind uint8

// The kinds of fields.
const (
	Text    Kind = iota // searched by a word alone
	Number              // plain numbers; a percent sign is allowed
	Bytes               // 1G, 512MiB, 1.5GB
	Seconds             // 90, 90s, 5m, 2h30m, 3d
)

// Value is what a row holds in a field: one or several texts or numbers, or
// nothing that is known.
type Value struct {
	Texts   []string
	Numbers []float64
}

// Row gives the value of a field, by its place in the list given to Compile.
type Row func(field int) Value

// Filter is a compiled filter. The zero Filter lets everything through.
type Filter struct{ root node }

// Match reports whether a row passes.
func (f *Filter) Match(r Row) bool { return f == nil || f.root == nil || f.root.match(r) }

type node interface{ match(Row) bool }

type (
	both   struct{ a, b node }
	either struct{ a, b node }
	negate struct{ a node }
)

func (n both) match(r Row) bool   { return n.a.match(r) && n.b.match(r) }
func (n either) match(r Row) bool { return n.a.match(r) || n.b.match(r) }
func (n negate) match(r Row) bool { return !n.a.match(r) }

// search is a word alone: it must occur in one of the text fields.
type search struct {
	fields []int
	lower  string
}

func (n search) match(r Row) bool {
	for _, f := range n.fields {
		for _, t := range r(f).Texts {
			if strings.Contains(strings.ToLower(t), n.lower) {
				return true
			}
		}
	}
	return false
}

// find looks a field up by name or alias.
func find(fields []Field, name string) (int, bool) {
	name = strings.ToLower(name)
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name || slices.Contains(f.Aliases, name) })
	return i, i >= 0
}
