package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/replay"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// replayCmd is the command ttmon replay with its flags.
type replayCmd struct {
	*app
	cmd    *cobra.Command
	at     string
	speed  float64
	paused bool
	pid    int
	json   bool
	serve  string
}

func newReplay(a *app) *cobra.Command {
	r := &replayCmd{app: a}
	r.cmd = &cobra.Command{
		Use:   "replay FILE [flags] [VIEW [ARGUMENT...]]",
		Short: "Show a recording in any of ttmon's screens",
		Long: `Shows what ttmon record wrote, as if it happened now. VIEW is the command that
shows it, with its own flags behind it:

  top, mem               the screens (top is the default); below them a line with a
                         slider: p plays and pauses, . and , step, ] and [ change the
                         speed, ) and ( go to the next event and back, < and > a
                         minute, { and } half an hour; the slider takes the mouse
  smi, dmon, pmon, ops   tables, reports, CSV and JSON, of one moment or from there on
  blocks                 the blocks that programs held at a moment, as ttmon mem -p
  why                    the requests for device memory that failed: ttmon why
  events, output         what happened, and what the program printed

--at is the moment to begin at: a time after the beginning (90s, 20m), before the
end (-30s), a clock time or date (14:03:20, 2026-11-15T14:03), the beginning (start),
the end, or the moment at which the most DRAM was allocated (peak), or of another
pool (peak:l1, peak:l1_small, peak:trace). Tables show the snapshot that has the most.
The page (--serve) begins shortly before the first of the worst events.

A file that is still being written, or whose recorder was killed, is shown as far
as it goes.`,
		Example: `  ttmon replay run.ttrec                              in ttmon top
  ttmon replay run.ttrec --at 20m --paused mem
  ttmon replay run.ttrec --at peak smi
  ttmon replay run.ttrec --at -10s smi --query-device=index,memory.used --format=csv
  ttmon replay run.ttrec --at peak blocks
  ttmon replay run.ttrec --serve                      as a page in the browser
  ttmon replay run.ttrec why --list
  ttmon replay run.ttrec events`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return r.run(args) },
	}
	f := r.cmd.Flags()
	f.SetInterspersed(false) // what follows VIEW is its own
	f.StringVar(&r.at, "at", "", "start at this `MOMENT`")
	f.Float64Var(&r.speed, "speed", 1, "play `N` times as fast")
	f.BoolVar(&r.paused, "paused", false, "start paused")
	f.StringVar(&r.serve, "serve", "", "serve it as a web page at `ADDR` of this machine (default: 127.0.0.1, a free port); runs ttmon-server")
	f.Lookup("serve").NoOptDefVal = "127.0.0.1:0"
	f.IntVarP(&r.pid, "pid", "p", 0, "with blocks: only those of process `PID`")
	f.BoolVar(&r.json, "json", false, "with blocks, events or output: print JSON")
	return r.cmd
}

func (r *replayCmd) run(args []string) error {
	if len(args) == 0 {
		return exit.Usage("missing recording: ttmon replay FILE (made by ttmon record)")
	}
	file := args[0]
	if err := r.cmd.Flags().Parse(args[1:]); err != nil { // flags may follow the file
		return exit.Usage("%w", err)
	}
	rest := r.cmd.Flags().Args()
	if r.serve != "" && len(rest) > 0 { // --serve ADDR: pflag takes an optional value with = only
		if len(rest) > 1 || !strings.Contains(rest[0], ":") {
			return exit.Usage("--serve shows the web page and takes no view: unexpected %q", rest[0])
		}
		r.serve = rest[0]
	}
	if len(rest) == 0 {
		rest = []string{"top"}
	}
	if r.speed < 0.01 || r.speed > 10000 {
		return exit.Usage("--speed: %g is not between 0.01 and 10000", r.speed)
	}
	rec, err := replay.Open(file)
	if err != nil {
		return err
	}
	defer rec.Close()
	moment := replay.Moment
	if view := rest[0]; view == "smi" || view == "dmon" || view == "pmon" || view == "ops" {
		moment = replay.SnapshotMoment
	}
	at, err := moment(rec.Reader, "--at", r.at)
	if err != nil {
		return err
	}
	if r.serve != "" {
		if at, err = r.pageStart(at, rec.Reader); err != nil {
			return exit.With(exit.Internal, "%s: %w", file, err)
		}
		return r.servePage(file, at, rec.Reader)
	}
	rec.Player.Go(at)
	rec.Player.SetSpeed(r.speed)
	if rest[0] != "top" && rest[0] != "mem" { // the screens list it among the events
		defer r.printMissing(file, rec.Reader)
	}
	switch view := rest[0]; view {
	case "blocks":
		return r.printBlocks(rec)
	case "events":
		return r.printEvents(rec)
	case "output":
		return r.printOutput(rec)
	case "top", "mem", "smi", "dmon", "pmon", "ops", "why":
		return r.show(rec, rest)
	default:
		return exit.Usage("unknown view %q: one of top, mem, smi, dmon, pmon, ops, blocks, why, events or output", view)
	}
}

// pageLead is how long before an event the page begins to play.
const pageLead = 5 * time.Second

// pageStart is the moment at which the page begins: the one of --at, or shortly before
// the first of the worst events.
func (r *replayCmd) pageStart(asked time.Time, reader *recording.Reader) (time.Time, error) {
	if r.at != "" {
		return asked, nil
	}
	at, err := replay.Eventful(reader)
	if err != nil || r.paused {
		return at, err
	}
	return at.Add(-pageLead), nil // servePage begins no earlier than the recording
}

// servePage runs ttmon-server in place of ttmon, to serve a recording as a page.
func (r *replayCmd) servePage(file string, at time.Time, reader *recording.Reader) error {
	first, _, _ := reader.Span()
	args := []string{
		"ttmon-server", "replay", "--listen", r.serve, "--from", max(at.Sub(first), 0).String(),
		"--speed", strconv.FormatFloat(r.speed, 'f', -1, 64), "--paused=" + strconv.FormatBool(r.paused), "--", file,
	}
	return becomeServer(args)
}

// show runs another command of ttmon on the recording.
func (r *replayCmd) show(rec *replay.Recording, rest []string) error {
	if r.at == "" && rest[0] == "smi" { // a single table: the end of the recording
		_, last, _ := rec.Reader.Span()
		rec.Player.Go(last)
	}
	rec.Player.Play(!r.paused)
	rec.FindMarks()
	saved := *r.app
	root := newRoot(r.app, commandIn(rest)) // resets the global flags to their defaults
	r.where.Root, r.Color, r.ASCII = saved.where.Root, saved.Color, saved.ASCII
	r.recorded, r.where.Instead = rec, rec.Player
	root.SetArgs(normalize(rest, false))
	return root.ExecuteContext(context.Background())
}

// recordedSource is the recording as a screen's source.
func recordedSource(rec *replay.Recording) source {
	return source{
		Source: rec.Player, name: "recording " + rec.Name, close: func() {}, buffers: rec.Buffers, blocks: rec.Blocks, recorded: true,
		noKill:   "this is a recording: its processes cannot be signalled",
		backfill: func([]string) *history.Store { return rec.Charts },
	}
}

// printMissing prints which parts of a recording could not be read.
func (a *app) printMissing(file string, r *recording.Reader) {
	_ = a.PrintAside(replay.AppendMissing(nil, file, r))
}

// printBlocks prints what programs held.
func (r *replayCmd) printBlocks(rec *replay.Recording) error {
	answer, err := rec.Held(r.pid)
	if err != nil {
		return err
	}
	if r.json {
		return r.printBlocksJSON(answer, nil)
	}
	return r.app.printBlocks(answer, nil)
}

func (r *replayCmd) printEvents(rec *replay.Recording) error {
	marks, err := rec.Reader.Events()
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	var out []byte
	for i := range marks {
		out = appendEvent(out, &marks[i].Event, r.json)
	}
	return r.Output("").Write(out)
}

func (r *replayCmd) printOutput(rec *replay.Recording) error {
	out, err := rec.AppendOutput(nil, r.json)
	if err != nil {
		return err
	}
	return r.Output("").Write(out)
}
