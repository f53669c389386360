package umd

import "strings"

// flowReader reads values within a line, and flow collections that go on over
// the next ones.
type flowReader struct {
	*yamlReader
	text   string // what is left of the current line
	indent int    // lines of the collection may not begin left of it
}

func (f *flowReader) skipBlanks() { f.text = strings.TrimLeft(f.text, " \t") }

// next makes sure that there is text left, on the next line if need be.
func (f *flowReader) next() {
	for f.skipBlanks(); f.text == ""; f.skipBlanks() {
		if f.pos+1 >= len(f.lines) || f.lines[f.pos+1].indent < f.indent {
			f.fail("the collection that begins above does not end")
		}
		f.pos++
		f.text = f.lines[f.pos].text
	}
}

// value reads one value at the start of the text; flow tells whether it is
// inside a flow collection.
func (f *flowReader) value(flow bool) node {
	defer f.enter()()
	n := node{line: f.lines[f.pos].num}
	switch f.text[0] {
	case '{':
		return f.flowMapping()
	case '[':
		return f.flowSequence()
	case '"', '\'':
		var ok bool
		if n.text, f.text, ok = cutQuoted(f.text); !ok {
			f.fail("%q: the quote does not end, or has an escape that is not known here", f.text)
		}
		return n
	}
	f.checkPlain(f.text)
	if isItem(f.text) {
		f.fail("an item within a line")
	}
	end := plainEnd(f.text, flow)
	if !flow && end < len(f.text) {
		f.fail("a key within a value")
	}
	if strings.HasSuffix(f.text[:end], ":") {
		f.fail("%q: want a blank after the colon", f.text)
	}
	n.text, n.plain = strings.TrimRight(f.text[:end], " \t"), true
	f.text = f.text[end:]
	return n
}

func (f *flowReader) flowSequence() node {
	n := node{kind: sequence, line: f.lines[f.pos].num}
	f.items('[', ']', func() {
		item := f.value(true)
		if item.kind == scalar && item.text == "" && item.plain {
			f.fail("an empty item")
		}
		n.items = append(n.items, item)
	})
	return n
}

func (f *flowReader) flowMapping() node {
	n := node{kind: mapping, line: f.lines[f.pos].num}
	f.items('{', '}', func() {
		key := f.value(true)
		f.next()
		if key.kind != scalar || key.plain && key.text == "" || f.text[0] != ':' {
			f.fail("%q: want key: value", f.text)
		}
		for _, k := range n.keys {
			if k == key.text {
				f.fail("key %q is there twice", k)
			}
		}
		f.text = f.text[1:]
		f.next()
		item := node{plain: true, line: key.line}
		if f.text[0] != ',' && f.text[0] != '}' {
			item = f.value(true)
		}
		n.keys, n.items = append(n.keys, key.text), append(n.items, item)
	})
	return n
}

// items reads from open to closing bracket, calling item at the start of each.
func (f *flowReader) items(open, closing byte, item func()) {
	if f.text[0] != open {
		panic("BUG: not at the start of a collection")
	}
	f.text = f.text[1:]
	for f.next(); f.text[0] != closing; f.next() {
		item()
		f.next()
		switch f.text[0] {
		case ',':
			f.text = f.text[1:]
		case closing:
		default:
			f.fail("%q: want , or %c", f.text, closing)
		}
	}
	f.text = f.text[1:]
}

// cutQuoted splits a quoted scalar off the start of s. Of the escapes it knows
// those that descriptors could need.
func cutQuoted(s string) (text, rest string, ok bool) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote && quote == '\'' && i+1 < len(s) && s[i+1] == quote:
			b.WriteByte(c)
			i++
		case c == quote:
			return b.String(), s[i+1:], true
		case c == '\\' && quote == '"':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' && s[i] != '/' {
				return "", s, false
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", s, false
}
