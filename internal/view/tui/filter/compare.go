package filter

import (
	"regexp"
	"strconv"
	"strings"
)

// compare builds the node for "field op value".
func compare(i int, f *Field, o, v token) (node, *Error) {
	operator := o.text
	switch operator {
	case "==":
		operator = "="
	case "=~":
		operator = "~"
	}
	if v.text == "?" && !v.quoted {
		return unknown(i, operator, o)
	}
	var n node
	var err *Error
	switch operator {
	case "=", "!=":
		n, err = equal(i, f, v)
	case "~", "!~":
		n, err = matches(i, v)
	default:
		n, err = ordered(i, f, operator, o, v)
	}
	if err != nil {
		return nil, err
	}
	if operator == "!=" || operator == "!~" {
		// "not equal" is about values: a row without one is neither.
		return both{known{i}, negate{n}}, nil
	}
	return n, nil
}

// known holds for rows that have a value.
type known struct{ field int }

func (n known) match(r Row) bool {
	v := r(n.field)
	return len(v.Texts) > 0 || len(v.Numbers) > 0
}

func unknown(i int, operator string, o token) (node, *Error) {
	switch operator {
	case "=":
		return negate{known{i}}, nil
	case "!=":
		return known{i}, nil
	}
	return nil, errorAt(o.pos, "what is not known can only be asked for with =? or !=?")
}

// pattern is a regular expression in the texts, or the digits, of a field.
type pattern struct {
	field int
	re    *regexp.Regexp
}

func (n pattern) match(r Row) bool {
	v := r(n.field)
	for _, t := range v.Texts {
		if n.re.MatchString(t) {
			return true
		}
	}
	for _, x := range v.Numbers {
		if n.re.MatchString(strconv.FormatFloat(x, 'f', -1, 64)) {
			return true
		}
	}
	return false
}

func matches(i int, v token) (node, *Error) {
	re, err := regexp.Compile("(?i)" + v.text)
	if err != nil {
		msg := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return nil, errorAt(v.pos, "%s is no regular expression: %s", v.text, msg)
	}
	return pattern{i, re}, nil
}

// oneOf holds if any value is one of the texts or lies in one of the ranges.
type oneOf struct {
	field  int
	globs  []string
	ranges [][2]float64
}

func (n oneOf) match(r Row) bool {
	v := r(n.field)
	for _, t := range v.Texts {
		for _, g := range n.globs {
			if glob(g, t) {
				return true
			}
		}
	}
	for _, x := range v.Numbers {
		for _, s := range n.ranges {
			if x >= s[0] && x <= s[1] {
				return true
			}
		}
	}
	return false
}

func equal(i int, f *Field, v token) (node, *Error) {
	n := oneOf{field: i}
	words := []string{v.text}
	if !v.quoted {
		words = strings.Split(v.text, ",")
	}
	for _, w := range words {
		if f.Kind == Text {
			n.globs = append(n.globs, w)
			continue
		}
		from, to, isRange := strings.Cut(w, "-")
		if !isRange || from == "" {
			from, to = w, w
		}
		lo, err := number(f, from, v.pos)
		if err != nil {
			return nil, err
		}
		hi, err := number(f, to, v.pos)
		if err != nil {
			return nil, err
		}
		n.ranges = append(n.ranges, [2]float64{lo, hi})
	}
	return n, nil
}

// glob compares text with a pattern in which "*" stands for anything.
func glob(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return s == pattern
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	for {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], more
	}
}

// order compares numbers.
type order struct {
	field int
	op    string
	than  float64
}

func (n order) match(r Row) bool {
	for _, x := range r(n.field).Numbers {
		switch n.op {
		case "<":
			if x < n.than {
				return true
			}
		case "<=":
			if x <= n.than {
				return true
			}
		case ">":
			if x > n.than {
				return true
			}
		case ">=":
			if x >= n.than {
				return true
			}
		}
	}
	return false
}

func ordered(i int, f *Field, operator string, o, v token) (node, *Error) {
	if f.Kind == Text {
		return nil, errorAt(o.pos, "%s is text: use = or ~", f.Name)
	}
	x, err := number(f, v.text, v.pos)
	if err != nil {
		return nil, err
	}
	return order{i, operator, x}, nil
}
