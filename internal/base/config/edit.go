package config

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// edit sets one key of a TOML document to a value already written as TOML.
// Everything else stays byte for byte: comments, order, blanks.
func edit(doc []byte, path, value string) ([]byte, error) {
	at, err := locate(doc, path)
	if err != nil {
		return nil, err
	}
	key := path[strings.LastIndexByte(path, '.')+1:]
	table := strings.TrimSuffix(path, "."+key)
	switch {
	case at.value.to > 0:
		return splice(doc, at.value, value), nil
	case at.inline:
		return nil, fmt.Errorf("%s is written as an inline table: put it on lines of its own, or set %s by hand", table, path)
	case at.insert >= 0:
		if s, ok := commented(doc, at, key); ok {
			return splice(doc, s, key+" = "+value), nil
		}
		line := key + " = " + value + "\n"
		if at.insert > 0 && doc[at.insert-1] != '\n' {
			line = "\n" + line
		}
		return splice(doc, span{at.insert, at.insert}, line), nil
	}
	var b bytes.Buffer
	b.Write(doc)
	if b.Len() > 0 {
		if !bytes.HasSuffix(doc, []byte("\n")) {
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[%s]\n%s = %s\n", table, key, value)
	return b.Bytes(), nil
}

type span struct{ from, to int }

func splice(doc []byte, s span, text string) []byte {
	out := make([]byte, 0, len(doc)+len(text))
	out = append(out, doc[:s.from]...)
	out = append(out, text...)
	return append(out, doc[s.to:]...)
}

// place is where a key of a document is, or where it belongs.
type place struct {
	value  span // of the value, if the key is there
	insert int  // else where a line for it goes; -1: its table is not there
	table  span // of its table's lines, if insert says there is one
	inline bool // its table is there as { … }
}

// commented finds the line in the key's table that holds its default behind
// a "# ", as the template writes it.
func commented(doc []byte, at place, key string) (span, bool) {
	prefix := []byte("# " + key + " = ")
	for from := at.table.from; from < at.table.to; {
		to := lineEnd(doc, from)
		if line := bytes.TrimRight(doc[from:to], "\r\n"); bytes.HasPrefix(line, prefix) {
			return span{from, from + len(line)}, true
		}
		from = to
	}
	return span{}, false
}

func locate(doc []byte, path string) (place, error) {
	at := place{insert: -1}
	var p unstable.Parser
	p.Reset(doc)
	parent := path[:strings.LastIndexByte(path, '.')]
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			key, end := keyOf(e)
			if table == parent && at.insert >= 0 {
				at.table.to = lineStart(doc, end)
			}
			if table = key; table == parent {
				at.insert = lineEnd(doc, end)
				at.table = span{at.insert, len(doc)}
			}
		case unstable.KeyValue:
			key, end := keyOf(e)
			full := strings.TrimPrefix(table+"."+key, ".")
			last := int(e.Raw.Offset + e.Raw.Length)
			switch {
			case full == path:
				from := end + bytes.IndexByte(doc[end:], '=') + 1
				for doc[from] == ' ' || doc[from] == '\t' {
					from++
				}
				at.value = span{from, last}
				return at, nil
			case e.Value().Kind == unstable.InlineTable && strings.HasPrefix(path, full+"."):
				at.inline = true
			case table == parent:
				at.insert = lineEnd(doc, last)
			}
		}
	}
	return at, p.Error()
}

// keyOf is the dotted key of a table header or key-value line, and where it ends.
func keyOf(e *unstable.Node) (key string, end int) {
	var parts []string
	for it := e.Key(); it.Next(); {
		n := it.Node()
		parts = append(parts, string(n.Data))
		end = int(n.Raw.Offset + n.Raw.Length)
	}
	return strings.Join(parts, "."), end
}

// lineStart is the start of the line that holds offset.
func lineStart(doc []byte, offset int) int { return bytes.LastIndexByte(doc[:offset], '\n') + 1 }

// lineEnd is the start of the line after the one that holds offset.
func lineEnd(doc []byte, offset int) int {
	if i := bytes.IndexByte(doc[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(doc)
}
