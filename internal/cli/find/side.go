package find

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/book/runs/compare"
	"github.com/ttmon/ttmon/internal/cli/replay"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/past/runs/keep"
	"github.com/ttmon/ttmon/internal/past/runs/lines"
)

// Sides finds what ttmon diff compares.
type Sides struct {
	*Finder
	Match string // of the programs of a recording, only those with this text
	// Read is called with each recording that was read.
	Read func(file string, r *recording.Reader)
}

// IsRun reports whether an argument names a run: r318. A file of that name takes
// precedence.
func IsRun(arg string) bool {
	if _, ok := runs.ParseID(arg); !ok || !strings.HasPrefix(arg, "r") {
		return false
	}
	_, err := os.Stat(arg)
	return err != nil
}

// Of returns both sides, with their lines of code: of two runs or recordings, or the
// usual run and the one that was named.
func (s *Sides) Of(ctx context.Context, args []string) (a, b *compare.Side, err error) {
	if len(args) == 1 {
		a, b, err = s.usualAnd(ctx, args[0])
	} else if b, err = s.side(ctx, args[1], nil); err == nil {
		a, err = s.side(ctx, args[0], b) // of a recording, the program that is like B
	}
	if err != nil {
		return nil, nil, err
	}
	s.WithLines(ctx, func(find LinesOf) {
		for _, x := range []*compare.Side{a, b} {
			if !x.Recorded {
				x.AddLines(find)
			}
		}
	})
	return a, b, nil
}

// usualAnd is the median of the runs of the same command before a run, and that run.
func (s *Sides) usualAnd(ctx context.Context, name string) (usual, side *compare.Side, err error) {
	run, err := s.Run(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	usual, err = compare.Usual(&run, func(q runs.Query) ([]runs.Run, error) {
		answer, err := s.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		return answer.Runs, nil
	})
	if errors.Is(err, compare.ErrFirst) {
		err = exit.With(exit.NoDevice, "%w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	side, err = compare.NewSide(name, run)
	return usual, side, err
}

// side returns a run by its number, or the program of a recording: FILE[@MOMENT].
// other is the other side, if it is known already: of several programs, the one that
// is like it is chosen.
func (s *Sides) side(ctx context.Context, arg string, other *compare.Side) (*compare.Side, error) {
	if IsRun(arg) {
		r, err := s.Run(ctx, arg)
		if err != nil {
			return nil, err
		}
		return compare.NewSide(arg, r)
	}
	file, moment := splitMoment(arg)
	r, err := replay.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer s.Read(file, r)
	var until time.Time
	if moment != "" {
		if until, err = replay.Moment(r, arg, moment); err != nil {
			return nil, err
		}
	}
	return s.recorded(r, arg, until, other)
}

// splitMoment splits FILE@MOMENT, unless there is a file of that name.
func splitMoment(arg string) (file, moment string) {
	if n := strings.LastIndexByte(arg, '@'); n >= 0 {
		if _, err := os.Stat(arg); err != nil {
			return arg[:n], arg[n+1:]
		}
	}
	return arg, ""
}

// recorded is the program of a recording, up to a time.
func (s *Sides) recorded(r *recording.Reader, name string, until time.Time, other *compare.Side) (*compare.Side, error) {
	found, err := keep.OfRecording(r, until)
	if err != nil {
		return nil, exit.With(exit.Internal, "%s: %w", name, err)
	}
	if s.Match != "" {
		q := runs.Query{Text: s.Match}
		found.Choose(func(r *runs.Run) bool { return q.Matches(r) })
	}
	var like *runs.Run
	if other != nil {
		like = other.Last()
	}
	run, ok := found.Program(like)
	l, err := lines.Of(r, found.Until, &run, found.Chips)
	if err != nil {
		return nil, exit.With(exit.Internal, "%s: %w", name, err)
	}
	switch ok = ok && (l != nil || !run.Seen.IsZero()); {
	case !ok && len(found.Runs) > 0: // programs of others
		return nil, exit.With(exit.NoDevice, "%s: its command (%s) and its children allocated nothing that was recorded, and had no device open in any snapshot; --match compares another program of the recording", name, strings.Join(found.Command, " "))
	case !ok:
		return nil, exit.With(exit.NoDevice, "%s: no program used a device in it", name)
	}
	if l != nil {
		lines.Raise(&run, l)
	}
	side, err := compare.NewSide(name, run)
	if err == nil {
		side.Lines, side.Recorded = l, true
	}
	return side, err
}
