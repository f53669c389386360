package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/history"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/replay"
	"github.com/ttmon/ttmon/internal/view/words"
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
		Short: "Shows a recording in ttmon's screens, as it was",
		Long: `Shows what ttmon record wrote, as if it happened now. VIEW is the command that
shows it, with its own flags behind it:

  top, mem               the screens (top is the default); below them a line with a
                         slider: p plays and pauses, . and , step, ] and [ change the
                         speed, ) and ( go to the next event and back, < and > a
                         minute, { and } half an hour; the slider takes the mouse
  smi, dmon, pmon        tables, reports, CSV and JSON of a moment, or as it goes on
  blocks                 the blocks that programs held at a moment, as ttmon mem -p
  events, output         what happened, and what the program printed

--at is the moment to begin at: a time after the beginning (90s, 20m), before the
end (-30s), a clock time or date (14:03:20, 2026-11-15T14:03), the beginning (start),
the end, or the moment at which the most DRAM was allocated (peak).

A file that is still being written, or whose recorder was killed, is shown as far
as it goes.`,
		Example: `  ttmon replay run.ttrec                              in ttmon top
  ttmon replay run.ttrec --at 20m --paused mem
  ttmon replay run.ttrec --at peak smi
  ttmon replay run.ttrec --at -10s smi --query-device=index,memory.used --format=csv
  ttmon replay run.ttrec --at peak blocks
  ttmon replay run.ttrec --serve                      as a page in the browser
  ttmon replay run.ttrec events`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return r.run(args) },
	}
	f := r.cmd.Flags()
	f.SetInterspersed(false) // what follows VIEW is its own
	f.StringVar(&r.at, "at", "", "begin at this `MOMENT`")
	f.Float64Var(&r.speed, "speed", 1, "play `N` times as fast")
	f.BoolVar(&r.paused, "paused", false, "begin without playing")
	f.StringVar(&r.serve, "serve", "", "serve it as a page at `ADDR` of this machine (default 127.0.0.1 and a free port), by ttmond")
	f.Lookup("serve").NoOptDefVal = "127.0.0.1:0"
	f.IntVarP(&r.pid, "pid", "p", 0, "blocks: only of process `PID`")
	f.BoolVar(&r.json, "json", false, "blocks, events, output: JSON")
	return r.cmd
}

// recorded is a recording that stands for a host.
type recorded struct {
	name   string
	player *recording.Player
	reader *recording.Reader
	charts *history.Store
}

// openRecording opens a file in which something is recorded, and says what is
// wrong with it.
func openRecording(path string) (*recording.Reader, error) {
	r, err := recording.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, recording.ErrForeign):
		return nil, usage("%w", err)
	case err != nil:
		return nil, fileError(err)
	}
	if _, _, ok := r.Span(); !ok {
		r.Close()
		return nil, exitWith(exitNoDevice, "%s: nothing is recorded in it yet", path)
	}
	return r, nil
}

// tellMissing says what of a recording could not be read, when it has been: damage
// is found on the way.
func (a *app) tellMissing(file string, r *recording.Reader) {
	say := func(format string, args ...any) {
		fmt.Fprintf(a.stderr, "ttmon: %s: %s\n", words.Escape(file), fmt.Sprintf(format, args...))
	}
	if r.Damaged > 0 {
		say("it is damaged in %s, and what happened there is missing: ttmon replay FILE events says when", words.Count(r.Damaged, "place"))
	}
	if _, last, ok := r.Span(); ok && r.Torn {
		say("it breaks off after %s, within a block: its recorder was killed, had no room left, or is writing now", last.Local().Format("15:04:05"))
	}
}

func (r *replayCmd) run(args []string) error {
	if len(args) == 0 {
		return usage("replay what? ttmon replay FILE (ttmon record makes one)")
	}
	file := args[0]
	if err := r.cmd.Flags().Parse(args[1:]); err != nil { // flags may follow the file
		return usage("%w", err)
	}
	rest := r.cmd.Flags().Args()
	if len(rest) == 0 {
		rest = []string{"top"}
	}
	if r.speed < 0.01 || r.speed > 10000 {
		return usage("--speed: %g is not between 0.01 and 10000", r.speed)
	}
	reader, err := openRecording(file)
	if err != nil {
		return err
	}
	defer reader.Close()
	rec := &recorded{name: filepath.Base(file), reader: reader, player: recording.NewPlayer(reader), charts: history.New()}
	at, err := moment(reader, "--at", r.at)
	if err != nil {
		return err
	}
	if r.serve != "" {
		return r.servePage(file, at)
	}
	rec.player.Go(at)
	rec.player.SetSpeed(r.speed)
	if rest[0] != "top" && rest[0] != "mem" { // screens have it among the events
		defer r.tellMissing(file, reader)
	}
	switch view := rest[0]; view {
	case "blocks":
		return r.printBlocks(rec)
	case "events":
		return r.printEvents(rec)
	case "output":
		return r.printOutput(rec)
	case "top", "mem", "smi", "dmon", "pmon":
		return r.show(rec, file, rest)
	default:
		return usage("there is no view %q: top, mem, smi, dmon, pmon, blocks, events or output", view)
	}
}

// servePage becomes the ttmond that serves a recording: the page is its.
func (r *replayCmd) servePage(file string, at time.Time) error {
	reader, err := openRecording(file)
	if err != nil {
		return err
	}
	first, _, _ := reader.Span()
	reader.Close()
	args := []string{
		"ttmond", "replay", "--listen", r.serve, "--from", max(at.Sub(first), 0).String(),
		"--speed", strconv.FormatFloat(r.speed, 'f', -1, 64), "--paused=" + strconv.FormatBool(r.paused), "--", file,
	}
	return becomeTTMond(args)
}

// show runs the command that shows it.
func (r *replayCmd) show(rec *recorded, file string, rest []string) error {
	if r.at == "" && rest[0] == "smi" { // without a way to play: as it was at last
		_, last, _ := rec.reader.Span()
		rec.player.Go(last)
	}
	rec.player.Play(!r.paused)
	if marks, err := openRecording(file); err == nil {
		go func() {
			defer marks.Close()
			_ = rec.player.Find(marks) // without them there is nothing to jump to
		}()
	}
	saved := *r.app
	root := newRoot(r.app) // sets the flags that all share to what they are by default
	r.rootDir, r.color, r.ascii = saved.rootDir, saved.color, saved.ascii
	r.recorded = rec
	root.SetArgs(normalize(rest, false))
	return root.ExecuteContext(context.Background())
}

// source is the recording as a screen's source.
func (rec *recorded) source() source {
	return source{
		Source: rec.player, name: "recording " + rec.name, close: func() {}, buffers: rec.buffers, blocks: rec.blocks, recorded: true,
		noKill:   "this is a recording: nobody can be signalled in it",
		backfill: func([]string) *history.Store { return rec.charts },
	}
}

func (rec *recorded) wrap(screen tui.App) tui.App { return replay.New(screen, rec.player, rec.charts) }

// blocks are the allocators of a process at the moment.
func (rec *recorded) blocks(_ context.Context, t act.Target) (out *blocks.Process, err error) {
	err = rec.player.With(func(s *recording.State) error {
		for _, p := range s.Processes() {
			if p.PID == t.PID && (p.Start == 0 || t.StartTicks == 0 || p.Start == t.StartTicks) {
				out = s.Blocks(p.ID)
				return nil
			}
		}
		return act.ErrUnknown
	})
	return out, err
}

// buffers are the blocks of a process at the moment.
func (rec *recorded) buffers(_ context.Context, t act.Target) (out []act.Buffer, err error) {
	err = rec.player.With(func(s *recording.State) error {
		snap, err := s.Snapshot()
		if err != nil || snap == nil {
			return err
		}
		devices := map[uint64]*model.Device{}
		names := map[uint64]string{}
		for i := range snap.Devices {
			for _, c := range snap.Devices[i].Chips {
				if id, ok := c.ID.Get(); ok {
					devices[id], names[id] = &snap.Devices[i], c.Name
				}
			}
		}
		found := false
		for _, p := range s.Processes() {
			if p.PID != t.PID || p.Start != 0 && t.StartTicks != 0 && p.Start != t.StartTicks {
				continue
			}
			found = true
			for _, id := range s.Lists() {
				def, live, _ := s.List(id)
				if def.Process != p.ID {
					continue
				}
				for b := range live.All() {
					for _, chip := range def.Chips {
						x := act.Buffer{Device: model.NoDevice, Chip: names[chip], Pool: def.Pool, Bytes: b.Asked, Age: s.Time.Sub(time.Unix(0, b.Born)), Note: place(s, b)}
						if x.Bytes == 0 {
							x.Bytes = b.Size * def.Geometry.Banks
						}
						if d := devices[chip]; d != nil {
							x.Device = d.Index
						}
						out = append(out, x)
					}
				}
			}
		}
		if !found {
			return act.ErrUnknown
		}
		return nil
	})
	return out, err
}

// place is where a block was allocated, for people.
func place(s *recording.State, b blocks.Block) string {
	site, ok := s.Site(b.Site)
	if !ok {
		return fmt.Sprintf("at %#x", b.Addr)
	}
	var parts []string
	if site.Tag != "" {
		parts = append(parts, "["+site.Tag+"]")
	}
	if f, ok := site.Where(); ok {
		parts = append(parts, fmt.Sprintf("%s:%d %s", filepath.Base(f.File), f.Line, f.Function))
	}
	return words.Escape(strings.Join(parts, " "))
}

// moment is the time that --at means, or whatever is like it: from says what.
func moment(r *recording.Reader, from, s string) (time.Time, error) {
	first, last, _ := r.Span()
	switch s {
	case "", "start":
		return first, nil
	case "end":
		return last, nil
	case "peak":
		return recording.Peak(r)
	}
	if d, ok := parseSpan(s); ok {
		if d < 0 {
			return last.Add(d), nil
		}
		return first.Add(d), nil
	}
	if t, err := time.ParseInLocation("15:04:05", s, time.Local); err == nil {
		y, m, d := first.Local().Date()
		t = time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, time.Local)
		if t.Before(first.Add(-time.Second)) {
			t = t.AddDate(0, 0, 1)
		}
		return t, nil
	}
	t, err := ago(from, s, last)
	if err != nil {
		return t, usage("%s: %q is not a moment: 20m (after the beginning), -30s (before the end), 14:03:20, a date, start, end or peak", from, s)
	}
	return t, nil
}

// printBlocks prints what programs held.
func (r *replayCmd) printBlocks(rec *recorded) error {
	var found []*blocks.Process
	var snap *model.Snapshot
	var at time.Time
	places := map[uint32]string{}
	err := rec.player.With(func(s *recording.State) (err error) {
		at = rec.player.Position()
		for _, p := range s.Processes() {
			if r.pid == 0 || p.PID == r.pid {
				found = append(found, s.Blocks(p.ID))
			}
		}
		for _, id := range s.Lists() {
			_, live, _ := s.List(id)
			for b := range live.All() {
				if _, known := places[b.Site]; b.Site != 0 && !known {
					places[b.Site] = place(s, b)
				}
			}
		}
		snap, err = s.Snapshot()
		return err
	})
	if err != nil {
		return exitWith(exitInternal, "%w", err)
	}
	if len(found) == 0 {
		return exitWith(exitNoDevice, "no program told its blocks at that moment: choose another with --at, or record the program (ttmon record -- COMMAND)")
	}
	if snap == nil {
		snap = &model.Snapshot{}
	}
	m := &memCmd{app: r.app, now: at}
	if len(places) > 0 {
		m.place = func(b blocks.Block) string { return places[b.Site] }
	}
	if r.json {
		return m.printJSON(found, nil, nil)
	}
	return m.printBlocks(found, snap, nil)
}

func (r *replayCmd) printEvents(rec *recorded) error {
	marks, err := rec.reader.Events()
	if err != nil {
		return exitWith(exitInternal, "%w", err)
	}
	e := &eventsCmd{app: r.app, json: r.json}
	var out []byte
	for i := range marks {
		out = e.append(out, &marks[i].Event)
	}
	return r.output("").write(out)
}

func (r *replayCmd) printOutput(rec *recorded) error {
	var out []byte
	cur := rec.reader.Begin()
	for {
		x, err := cur.Next()
		if err != nil {
			break
		}
		if x.Kind != recording.KindOutput {
			continue
		}
		if r.json {
			b, err := json.Marshal(map[string]any{"time": x.Time.UTC(), "stream": x.Output.Stream, "text": x.Output.Text})
			if err != nil {
				return err
			}
			out = append(append(out, b...), '\n')
			continue
		}
		out = fmt.Appendf(out, "%s %s  %s\n", x.Time.Local().Format("15:04:05.000"), strconv.Itoa(x.Output.Stream), words.Escape(x.Output.Text))
	}
	return r.output("").write(out)
}
