package promapi

import (
	"errors"
	"fmt"
	"regexp/syntax"

	"github.com/prometheus/prometheus/util/strutil"
)

// Bounds of the text of a question.
const (
	maxText  = 16 << 10
	maxRegex = 4000 // instructions of all regular expressions of a question
)

var errRegex = fmt.Errorf("its regular expressions are too large: they may have %d instructions together", maxRegex)

// checkText bounds a question before it is parsed: PromQL's parser compiles
// regular expressions while it reads, and a few bytes like (a{1000}){1000} make
// programs of a hundred megabytes. Every string is checked as if it were one.
func checkText(text string) error {
	if len(text) > maxText {
		return fmt.Errorf("it has %d bytes; at most %d are accepted", len(text), maxText)
	}
	total := 0
	for _, literal := range literals(text) {
		value, err := strutil.Unquote(literal)
		if err != nil {
			continue // the parser reports it
		}
		n, err := regexSize(value)
		if err != nil {
			return err
		}
		if total += n; total > maxRegex {
			return errRegex
		}
	}
	return nil
}

// literals finds the quoted strings of a question.
func literals(text string) (found []string) {
	for i := 0; i < len(text); i++ {
		switch quote := text[i]; quote {
		case '#': // a comment
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case '"', '\'', '`':
			begin := i
			for i++; i < len(text) && text[i] != quote; i++ {
				if text[i] == '\\' && quote != '`' {
					i++
				}
			}
			if i < len(text) {
				found = append(found, text[begin:i+1])
			}
		}
	}
	return found
}

// regexSize is about how many instructions a regular expression compiles to; 0
// for what is none.
func regexSize(text string) (int, error) {
	re, err := syntax.Parse(text, syntax.Perl)
	if e := (*syntax.Error)(nil); errors.As(err, &e) {
		switch e.Code {
		case syntax.ErrLarge, syntax.ErrNestingDepth, syntax.ErrInvalidRepeatSize:
			return 0, errRegex
		}
		return 0, nil // the parser reports it, if it is meant as one
	}
	if n := instructions(re); n <= maxRegex {
		return int(n), nil
	}
	return 0, errRegex
}

func instructions(re *syntax.Regexp) float64 {
	sum := 1.0
	for _, sub := range re.Sub {
		sum += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return float64(len(re.Rune))
	case syntax.OpRepeat:
		return sum * float64(max(re.Min+1, re.Max, 1))
	case syntax.OpCharClass:
		return 1 + float64(len(re.Rune))/16
	default:
		return sum
	}
}
