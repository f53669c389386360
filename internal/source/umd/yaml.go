package umd

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file reads the part of YAML that cluster descriptors are written in:
// maps and sequences in block and flow style, plain and quoted scalars,
// comments. Anchors, tags, block scalars, scalars over several lines and
// explicit keys are refused. A full YAML library would cost the client at every
// start, for these few files (docs/decisions/0003); the tests hold this reader
// against one.

// node is a scalar, a map (keys, items) or a sequence (items). Scalars stay
// text: ids need all 64 bits, and bus addresses look like numbers.
type node struct {
	kind  nodeKind
	line  int
	text  string
	plain bool // text was not quoted
	keys  []string
	items []node
}

type nodeKind uint8

const (
	scalar nodeKind = iota
	mapping
	sequence
)

// maxDepth is far above what descriptors nest (5), and keeps hostile input
// from exhausting the stack.
const maxDepth = 32

type yamlLine struct {
	num    int // from 1
	indent int
	text   string // without indentation, comment and trailing blanks; never empty
}

type yamlError struct {
	line int
	what string
}

func (e *yamlError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.what) }

// yamlReader reads lines[pos:]. Errors travel as panics of *yamlError inside
// this file, and as errors out of it.
type yamlReader struct {
	lines []yamlLine
	pos   int
	depth int
}

func parseYAML(src string) (root node, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *yamlError:
			err = e
		default:
			panic(e)
		}
	}()
	r := &yamlReader{lines: splitLines(src)}
	if len(r.lines) == 0 {
		return node{}, &yamlError{1, "the file is empty"}
	}
	for _, line := range r.lines {
		if line.text[0] == '\t' {
			return node{}, &yamlError{line.num, "indented by a tab"}
		}
		if strings.ContainsFunc(line.text, isControl) {
			return node{}, &yamlError{line.num, "has a control character, or is not UTF-8"}
		}
	}
	root = r.block(r.lines[0].indent)
	if r.pos < len(r.lines) {
		r.fail("unexpected indentation")
	}
	return root, nil
}

func (r *yamlReader) fail(what string, args ...any) {
	num := 0
	if len(r.lines) > 0 {
		num = r.lines[min(r.pos, len(r.lines)-1)].num
	}
	panic(&yamlError{num, fmt.Sprintf(what, args...)})
}

func (r *yamlReader) enter() func() {
	if r.depth++; r.depth > maxDepth {
		r.fail("nested too deeply")
	}
	return func() { r.depth-- }
}

// isControl finds what YAML would take for a line break, or does not allow.
func isControl(c rune) bool { return c != '\t' && !unicode.IsPrint(c) || c == utf8.RuneError }

// splitLines drops what carries no data. It ends at the end of the first
// document.
func splitLines(src string) []yamlLine {
	var lines []yamlLine
	src = strings.TrimPrefix(src, "\ufeff")
	for num := 1; src != ""; num++ {
		var raw string
		raw, src, _ = strings.Cut(src, "\n")
		raw = strings.TrimSuffix(raw, "\r")
		if isMarker(raw, "---") && len(lines) == 0 && strings.TrimSpace(raw) == "---" {
			continue
		}
		if isMarker(raw, "---") || isMarker(raw, "...") {
			break
		}
		text := strings.TrimLeft(raw, " ")
		indent := len(raw) - len(text)
		if text = strings.TrimRight(stripComment(text), " \t"); text != "" {
			lines = append(lines, yamlLine{num, indent, text})
		}
	}
	return lines
}

func isMarker(raw, marker string) bool {
	rest, ok := strings.CutPrefix(raw, marker)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// stripComment cuts a line at a # that begins a comment: one at the start or
// after a blank, outside of quotes.
func stripComment(s string) string {
	var quote byte
	for i := 0; i < len(s); i++ {
		begins := i == 0 || strings.IndexByte(" \t,[{", s[i-1]) >= 0
		switch c := s[i]; {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case begins && (c == '"' || c == '\''):
			quote = c
		case c == '#' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t'):
			return s[:i]
		}
	}
	return s
}

// block reads the map, sequence or scalar that begins at the current line.
func (r *yamlReader) block(indent int) node {
	defer r.enter()()
	line := r.lines[r.pos]
	if isItem(line.text) {
		return r.sequence(indent)
	}
	if _, _, ok := splitKey(line.text); ok {
		return r.mapping(indent)
	}
	return r.inline(line.text, indent)
}

func isItem(text string) bool { return text == "-" || strings.HasPrefix(text, "- ") }

func (r *yamlReader) sequence(indent int) node {
	n := node{kind: sequence, line: r.lines[r.pos].num}
	for r.pos < len(r.lines) {
		line := &r.lines[r.pos]
		if line.indent != indent || !isItem(line.text) {
			break
		}
		if line.text == "-" {
			r.pos++
			n.items = append(n.items, r.below(indent, false))
			continue
		}
		rest := strings.TrimLeft(line.text[1:], " ")
		line.indent += len(line.text) - len(rest) // the item goes on where its text began
		line.text = rest
		n.items = append(n.items, r.block(line.indent))
	}
	r.endOf(indent)
	return n
}

func (r *yamlReader) mapping(indent int) node {
	n := node{kind: mapping, line: r.lines[r.pos].num}
	seen := map[string]bool{}
	for r.pos < len(r.lines) {
		line := r.lines[r.pos]
		if line.indent != indent || isItem(line.text) {
			break
		}
		key, rest, ok := splitKey(line.text)
		if !ok {
			r.fail("%q is neither a key nor an item", line.text)
		}
		r.checkPlain(line.text)
		if seen[key] {
			r.fail("key %q is there twice", key)
		}
		seen[key] = true
		n.keys = append(n.keys, key)
		if rest == "" {
			r.pos++
			n.items = append(n.items, r.below(indent, true))
		} else {
			n.items = append(n.items, r.inline(rest, indent+1))
		}
	}
	r.endOf(indent)
	return n
}

// below reads the value that a key or dash has on the lines after it: deeper
// ones, or, after a key, items that are not indented.
func (r *yamlReader) below(indent int, key bool) node {
	if r.pos < len(r.lines) {
		next := r.lines[r.pos]
		if next.indent > indent || key && next.indent == indent && isItem(next.text) {
			return r.block(next.indent)
		}
	}
	return node{plain: true, line: r.lines[r.pos-1].num}
}

// endOf checks that the line after a block belongs to something around it.
func (r *yamlReader) endOf(indent int) {
	if r.pos < len(r.lines) && r.lines[r.pos].indent > indent {
		r.fail("unexpected indentation")
	}
}

// inline reads a scalar or a flow collection that begins with text on the
// current line, and consumes its lines. Flow collections may go on below, but
// not left of indent.
func (r *yamlReader) inline(text string, indent int) node {
	f := flowReader{yamlReader: r, text: text, indent: indent}
	n := f.value(false)
	if f.skipBlanks(); f.text != "" {
		r.fail("%q follows a value", f.text)
	}
	r.pos++
	return n
}

// splitKey splits "key: value" and "key:".
func splitKey(text string) (key, rest string, ok bool) {
	if text[0] == '"' || text[0] == '\'' {
		key, rest, ok = cutQuoted(text)
		if rest = strings.TrimLeft(rest, " "); !ok || rest == "" || rest[0] != ':' || len(rest) > 1 && rest[1] != ' ' {
			return "", "", false
		}
		return key, strings.TrimLeft(rest[1:], " "), true
	}
	if text[0] == '{' || text[0] == '[' {
		return "", "", false
	}
	i := plainEnd(text, false)
	if i == len(text) {
		return "", "", false
	}
	return strings.TrimRight(text[:i], " \t"), strings.TrimLeft(text[i+1:], " \t"), true
}

// plainEnd is where a plain scalar at the start of s ends: at a colon that is
// followed by a blank or nothing and, in a flow collection, at its punctuation.
func plainEnd(s string, flow bool) int {
	for i := range len(s) {
		switch s[i] {
		case ':':
			if i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\t' {
				return i
			}
		case ',', ']', '}', '[', '{':
			if flow {
				return i
			}
		}
	}
	return len(s)
}

// checkPlain refuses what begins like a part of YAML that is not read here.
func (r *yamlReader) checkPlain(s string) {
	if s != "" && strings.IndexByte("&*!|>%@`?,]}", s[0]) >= 0 {
		r.fail("%q: this part of YAML is not used in cluster descriptors", s)
	}
}
