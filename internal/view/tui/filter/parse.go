package filter

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/base/nearest"
)

// maxDepth keeps a hostile or runaway expression from exhausting the stack.
const maxDepth = 100

// Compile reads a filter over the given fields. The error is an *Error.
func Compile(s string, fields []Field) (*Filter, error) {
	tokens, lexErr := lex(s)
	if lexErr != nil {
		return nil, lexErr
	}
	if len(tokens) == 1 {
		return &Filter{}, nil
	}
	p := &parser{tokens: tokens, fields: fields}
	root, err := p.or()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != end {
		return nil, p.unexpected(t)
	}
	return &Filter{root: root}, nil
}

type parser struct {
	tokens []token
	at     int
	depth  int
	fields []Field
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

func (p *parser) or() (node, *Error) {
	a, err := p.and()
	for err == nil && p.peek().kind == orOp {
		p.next()
		var b node
		if b, err = p.and(); err == nil {
			a = either{a, b}
		}
	}
	return a, err
}

// and joins terms that stand side by side, with or without the word.
func (p *parser) and() (node, *Error) {
	a, err := p.not()
	for err == nil {
		switch p.peek().kind {
		case andOp:
			p.next()
		case word, open, notOp:
		default:
			return a, nil
		}
		var b node
		if b, err = p.not(); err == nil {
			a = both{a, b}
		}
	}
	return nil, err
}

func (p *parser) not() (node, *Error) {
	if p.peek().kind != notOp {
		return p.primary()
	}
	if err := p.enter(p.next()); err != nil {
		return nil, err
	}
	defer p.leave()
	a, err := p.not()
	return negate{a}, err
}

func (p *parser) enter(t token) *Error {
	if p.depth++; p.depth > maxDepth {
		return errorAt(t.pos, "nested too deeply")
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) primary() (node, *Error) {
	t := p.next()
	switch t.kind {
	case open:
		if err := p.enter(t); err != nil {
			return nil, err
		}
		defer p.leave()
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		if p.next().kind != shut {
			return nil, errorAt(t.pos, "this parenthesis is never closed")
		}
		return n, nil
	case word:
		if o := p.peek(); o.kind == op && !t.quoted {
			p.next()
			return p.comparison(t, o)
		}
		return p.bare(t), nil
	}
	return nil, p.unexpected(t)
}

func (p *parser) unexpected(t token) *Error {
	switch t.kind {
	case end:
		return errorAt(t.pos, "something is missing at the end")
	case shut:
		return errorAt(t.pos, "this parenthesis was never opened")
	case op:
		return errorAt(t.pos, "a field is missing before %s", t.text)
	default:
		return errorAt(t.pos, "%q does not belong here", t.text)
	}
}

// bare searches all text fields for a word.
func (p *parser) bare(t token) node {
	n := search{lower: strings.ToLower(t.text)}
	for i, f := range p.fields {
		if f.Kind == Text {
			n.fields = append(n.fields, i)
		}
	}
	return n
}

func (p *parser) comparison(name, o token) (node, *Error) {
	i, ok := find(p.fields, name.text)
	if !ok {
		return nil, errorAt(name.pos, "unknown field %q%s", name.text, p.suggest(name.text))
	}
	v := p.next()
	if v.kind == end || v.kind == shut {
		return nil, errorAt(v.pos, "a value is missing after %s%s", name.text, o.text)
	}
	if v.kind != word {
		return nil, errorAt(v.pos, "a value belongs here, not %q: quote it if it is meant", v.text)
	}
	return compare(i, &p.fields[i], o, v)
}

// suggest says which field was probably meant, or which there are.
func (p *parser) suggest(name string) string {
	var names, all []string
	for _, f := range p.fields {
		names = append(names, f.Name)
		all = append(append(all, f.Name), f.Aliases...)
	}
	if near := nearest.Word(strings.ToLower(name), all); near != "" {
		return fmt.Sprintf(": did you mean %s?", near)
	}
	return " (" + strings.Join(names, " ") + ")"
}
