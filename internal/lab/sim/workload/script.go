package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// script is what a simulated program has its chips do over time: operations,
// pauses and hangs.
type script []workStep

func (s *script) parse(text string) (err error) {
	*s, err = parseWork(text)
	return err
}

func (script) help() string { return workHelp }

const workHelp = `what its chips do, again and again; steps are separated by ";":
matmul 2ms x40    40 programs of an operation, each of 2 ms
gap 300us         pause before each program from here on: the host is late
idle 3s           nothing is enqueued
hang 30s          a program that does not complete (without a time: ever)`

// stepKind is what a step does.
type stepKind int

// The kinds.
const (
	programs stepKind = iota
	gap
	idle
	hang
)

// workStep is a step of a script.
type workStep struct {
	kind  stepKind
	Name  string        // of programs
	Time  time.Duration // of one program, a gap, an idle time; of a hang, 0: for ever
	Count int           // of programs
}

// The limits keep a player's work small: a program of a microsecond is shorter
// than any that a chip reports.
const (
	shortest = time.Microsecond
	longest  = 24 * time.Hour
	most     = 1_000_000
)

// Parse reads a script.
func parseWork(text string) (steps []workStep, err error) {
	var round time.Duration
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		s, err := parseStep(words)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(part), err)
		}
		if s.kind != gap {
			round += s.Time * time.Duration(max(1, s.Count))
		}
		if s.kind == hang && s.Time == 0 {
			round = longest
		}
		steps = append(steps, s)
	}
	if round == 0 {
		return nil, fmt.Errorf("work without a program or a pause; work is %s", workHelp)
	}
	return steps, nil
}

func parseStep(words []string) (s workStep, err error) {
	switch words[0] {
	case "gap":
		s.kind = gap
	case "idle":
		s.kind = idle
	case "hang":
		s.kind = hang
		if len(words) == 1 {
			return s, nil
		}
	default:
		s.Name, s.Count = words[0], 1
	}
	if s.kind == programs && len(words) == 3 {
		n, ok := strings.CutPrefix(words[2], "x")
		if s.Count, err = strconv.Atoi(n); err != nil || !ok || s.Count < 1 || s.Count > most {
			return s, fmt.Errorf("%s is not a number of programs such as x40", words[2])
		}
		words = words[:2]
	}
	if len(words) != 2 {
		return s, fmt.Errorf("a step is a word and a time; work is %s", workHelp)
	}
	least := shortest
	if s.kind == gap {
		least = 0
	}
	if s.Time, err = time.ParseDuration(words[1]); err != nil || s.Time < least || s.Time > longest {
		return s, fmt.Errorf("%s is not a time from %v to %v", words[1], least, longest)
	}
	return s, nil
}
