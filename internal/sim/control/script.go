package control

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Step is one line of a script.
type Step struct {
	At   time.Duration // after the host started
	Args []string
	Line int
}

// ParseScript reads a script: lines "at 2s reset 0 block=1s". Empty lines and
// what follows # are nothing; a line without "at" happens at the time of the
// line before. Words of a command are separated by blanks; quotes hold blanks.
func ParseScript(r io.Reader) ([]Step, error) {
	var steps []Step
	var at time.Duration
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words, err := fields(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("script line %d: %w", n, err)
		}
		if len(words) > 1 && words[0] == "at" {
			if at, err = time.ParseDuration(words[1]); err != nil || at < 0 {
				return nil, fmt.Errorf("script line %d: %q is not a time such as 500ms or 2s", n, words[1])
			}
			words = words[2:]
		}
		if len(words) == 0 {
			continue
		}
		if _, err := find(words[0]); err != nil {
			return nil, fmt.Errorf("script line %d: %w", n, err)
		}
		steps = append(steps, Step{at, words, n})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return steps, nil
}

// fields splits at blanks outside quotes, and drops a comment.
func fields(line string) (words []string, err error) {
	var word strings.Builder
	open, quote := false, rune(0)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == '#' && !open:
			return words, nil
		case r == ' ' || r == '\t':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

// Play carries out a script until it is over or ctx ends. What goes wrong is
// logged; the rest continues.
func (h *Host) Play(ctx context.Context, steps []Step) {
	start := time.Now()
	for _, s := range steps {
		timer := time.NewTimer(time.Until(start.Add(s.At)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if _, err := h.Do(s.Args); err != nil {
			slog.Error("script command failed", "line", s.Line, "command", strings.Join(s.Args, " "), "err", err)
		}
	}
}
