package prom

import (
	"slices"
	"strings"
)

// Label is one label of a sample. Its value is valid UTF-8.
type Label struct{ Name, Value string }

// Labels are those of a sample, without its name. They stay structured up to the
// database; only a page writes them as text.
type Labels []Label

// Pairs makes labels of names and values.
func Pairs(list ...string) (l Labels) {
	for pair := range slices.Chunk(list, 2) {
		l = label(l, pair[0], pair[1])
	}
	return l
}

// AppendText appends what stands between the braces, escaped.
func (l Labels) AppendText(b []byte) []byte {
	for i := range l {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, l[i].Name...), `="`...)
		b = append(escape(b, l[i].Value), '"')
	}
	return b
}

// label appends a label; an empty value is no label. What is no UTF-8 is replaced:
// Prometheus would refuse the whole page.
func label(l Labels, name, value string) Labels {
	if value == "" {
		return l
	}
	return append(l, Label{name, strings.ToValidUTF8(value, "\uFFFD")})
}

// escape appends a label's value.
func escape(b []byte, value string) []byte {
	for i := range len(value) {
		switch c := value[i]; c {
		case '\\':
			b = append(b, `\\`...)
		case '"':
			b = append(b, `\"`...)
		case '\n':
			b = append(b, `\n`...)
		default:
			b = append(b, c)
		}
	}
	return b
}

// constant are the labels of a row of the metric table, which has them as PromQL
// does: `pool="dram",direction="to"`.
func constant(text string) (l Labels) {
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		l = label(l, name, strings.Trim(value, `"`))
	}
	return l
}
