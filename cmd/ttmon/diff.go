package main

import (
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/exit"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/replay"
	"github.com/ttmon/ttmon/internal/rundiff"
	"github.com/ttmon/ttmon/internal/view/text"
)

// diffCmd is the command ttmon diff with its flags.
type diffCmd struct {
	*app
	json bool
	top  int
}

func newDiff(a *app) *cobra.Command {
	d := &diffCmd{app: a}
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compares two recordings, or two moments: peaks, who grew, blocks that are new",
		Long: `Compares two recordings, or two moments of one: how much of each chip's memory was
held at most and is held, which lines of code hold or have allocated more or less,
and which blocks B holds that A does not. A and B are files of ttmon record; with
@MOMENT behind the name it is what was so up to then (see ttmon replay --at).

Blocks of two moments of one recording are compared one by one; blocks of two
runs, by where they were allocated and how large they are.`,
		Example: `  ttmon diff before.ttrec after.ttrec
  ttmon diff run.ttrec@5m run.ttrec@20m         what has grown in a quarter of an hour
  ttmon diff run.ttrec@peak run.ttrec --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return d.run(args) },
	}
	f := cmd.Flags()
	f.BoolVar(&d.json, "json", false, "JSON: all of it")
	f.IntVar(&d.top, "top", 15, "list `N` lines and kinds of blocks at most")
	return cmd
}

func (d *diffCmd) run(args []string) error {
	if len(args) != 2 {
		return exit.Usage("compare which two? ttmon diff A B")
	}
	files, moments := make([]string, 2), make([]string, 2)
	for i, arg := range args {
		files[i] = arg
		if n := strings.LastIndexByte(arg, '@'); n >= 0 {
			if _, err := os.Stat(arg); err != nil { // no file is called that
				files[i], moments[i] = arg[:n], arg[n+1:]
			}
		}
	}
	var sides [2]*rundiff.Side
	for i := range sides {
		r, err := replay.OpenFile(files[i])
		if err != nil {
			return err
		}
		sides[i], err = d.sum(r, args[i], moments[i], files[0] == files[1])
		if i == 0 || files[0] != files[1] {
			d.tellMissing(files[i], r)
		}
		r.Close()
		if err != nil {
			return err
		}
	}
	diff := rundiff.Compare(sides[0], sides[1])
	if !d.json {
		return d.PrintText(text.AppendDiff(nil, diff, d.top))
	}
	b, err := json.MarshalIndent(diff, "", "  ")
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	return d.Output("").Write(append(b, '\n'))
}

func (d *diffCmd) sum(r *recording.Reader, name, at string, same bool) (*rundiff.Side, error) {
	var t time.Time
	if at != "" {
		var err error
		if t, err = replay.Moment(r, name, at); err != nil {
			return nil, err
		}
	}
	s, err := rundiff.Sum(r, rundiff.Options{Name: name, At: t, Same: same})
	if err != nil {
		return nil, exit.With(exit.Internal, "%s: %w", name, err)
	}
	return s, nil
}
