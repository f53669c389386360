package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/export"
	"github.com/ttmon/ttmon/internal/cli/metaltrace"
	"github.com/ttmon/ttmon/internal/cli/replay"
	"github.com/ttmon/ttmon/internal/cli/session"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// exportCmd is the command ttmon export with its flags.
type exportCmd struct {
	*app
	cmd    *cobra.Command
	format map[string]*bool
	file   string
	at     string
	large  string
	metal  []string
	start  string
}

// exportFormat is a form in which a recording can be handed on.
type exportFormat struct {
	flag, suffix, help string
	trace              bool                                   // large blocks are told singly, small ones summed up
	sink               func(io.Writer, time.Time) export.Sink // of a recording that begins then; nil: a profile of a moment
}

// exportFormats are all of them.
func exportFormats() []exportFormat {
	return []exportFormat{
		{"perfetto", ".perfetto-trace", "a trace of Perfetto (ui.perfetto.dev opens it)", true, func(w io.Writer, t time.Time) export.Sink { return export.NewPerfetto(w, t) }},
		{"pprof", ".pb.gz", "a heap profile, for go tool pprof and others", false, nil},
		{"csv", ".csv", "CSV: a line for each figure and moment", false, func(w io.Writer, _ time.Time) export.Sink { return export.NewCSV(w) }},
		{"jsonl", ".jsonl", "JSON: a document a line, of figures, slices and events", false, func(w io.Writer, _ time.Time) export.Sink { return export.NewJSONL(w) }},
		{"openmetrics", ".om.txt", "OpenMetrics, for promtool tsdb create-blocks-from openmetrics", false, func(w io.Writer, _ time.Time) export.Sink { return export.NewOpenMetrics(w) }},
	}
}

func newExport(a *app) *cobra.Command {
	e := &exportCmd{app: a, format: map[string]*bool{}}
	e.cmd = &cobra.Command{
		Use:   "export FILE --perfetto | --pprof | --csv | --jsonl | --openmetrics",
		Short: "Convert a recording for Perfetto, pprof, Prometheus or CSV",
		Long: `Converts a recording of ttmon record for another viewer. In traces, devices
have counters for each pool of memory, power, clocks, temperature and PCIe;
programs whose blocks are known have exact ones, slices for as long as anything was
held under a tag, and large blocks joined from allocation to free; events and
output lines are marks. Of a recording made with --programs, each program that ran
on a chip is a slice on its track.

No format can mark a figure as missing or doubtful. A missing figure has no point,
and one that was not always exact has a second counter that says how to read it:
0 exact, 1 at least, 2 unsure.

With --metal, tt-metal's own traces stand beside it: profile_log_device.csv, the
report ops_perf_results_*.csv, tracy_ops_times.csv, and the db.sqlite of ttnn's graph
report (which takes python3). They have no time of day: each is laid so that it ends
when its file was written, which is a second or so late; --metal-start says when the
first event was.`,
		Example: `  ttmon export run.ttrec --perfetto                    run.perfetto-trace, for ui.perfetto.dev
  ttmon export run.ttrec --pprof --at 20m && go tool pprof run.pb.gz
  ttmon export run.ttrec --csv -o - | head
  ttmon export run.ttrec --perfetto --metal generated/profiler/.logs/profile_log_device.csv
  ttmon export run.ttrec --openmetrics                 for promtool tsdb create-blocks-from`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return e.run(args) },
	}
	f := e.cmd.Flags()
	for _, x := range exportFormats() {
		e.format[x.flag] = f.Bool(x.flag, false, x.help)
	}
	f.StringVarP(&e.file, "output", "o", "", "write to `FILE` (- is standard output; default: beside the recording)")
	f.StringVar(&e.at, "at", "end", "with --pprof: the memory held at this `MOMENT`; see ttmon replay")
	f.StringVar(&e.large, "large", "1M", "in traces, draw each block of at least this `SIZE` on its own")
	f.StringArrayVar(&e.metal, "metal", nil, "add tt-metal's own trace `FILE`: a device log, op report, Tracy CSV or graph report; repeatable")
	f.StringVar(&e.start, "metal-start", "", "the `MOMENT` of the first event in those files (default: the last event is the file's mtime)")
	return e.cmd
}

func (e *exportCmd) run(args []string) error {
	var chosen *exportFormat
	for _, x := range exportFormats() {
		switch {
		case !*e.format[x.flag]:
		case chosen != nil:
			return exit.Usage("--%s and --%s cannot be used together", chosen.flag, x.flag)
		default:
			chosen = &x
		}
	}
	large, err := parseSize(e.large)
	switch {
	case len(args) != 1:
		return exit.Usage("missing recording: ttmon export FILE --perfetto")
	case chosen == nil:
		return exit.Usage("missing format: --perfetto, --pprof, --csv, --jsonl or --openmetrics")
	case err != nil:
		return exit.Usage("--large: %w", err)
	case len(e.metal) > 0 && chosen.sink == nil:
		return exit.Usage("--metal cannot be used with --pprof: a heap profile has no time axis")
	}
	r, err := replay.OpenFile(args[0])
	if err != nil {
		return err
	}
	defer r.Close()
	defer e.printMissing(args[0], r)
	out := e.file
	if out == "" {
		out = strings.TrimSuffix(args[0], session.Suffix) + chosen.suffix
	}
	laid, err := e.lay(r)
	if err != nil {
		return err
	}
	err = e.WriteFile(out, 0o600, func(w io.Writer) error {
		err := e.convert(r, chosen, large, laid, w)
		if _, ok := errors.AsType[*exit.Error](err); ok || err == nil {
			return err
		}
		return exit.With(exit.Internal, "%s: %w", args[0], err)
	})
	if e.file == "" && errors.Is(err, fs.ErrPermission) {
		return exit.With(exit.Denied, "%w: -o FILE writes it elsewhere", err)
	}
	return err
}

// lay puts the traces of tt-metal on the recording's clock, and says how.
func (e *exportCmd) lay(r *recording.Reader) (list []export.Slice, err error) {
	var start time.Time
	if e.start != "" {
		if start, err = replay.Moment(r, "--metal-start", e.start); err != nil {
			return nil, err
		}
	}
	for _, file := range e.metal {
		trace, err := metaltrace.Read(context.Background(), file)
		if err != nil {
			return nil, &exit.Error{Code: exit.BadArgument, Err: err}
		}
		more, how := export.Align(trace, start)
		list = append(list, more...)
		if away := outside(r, more); away != "" {
			how += "; " + away
		}
		fmt.Fprintf(e.Stderr, "ttmon: %s\n", words.Escape(fmt.Sprintf("%s (%s, %d slices): %s", file, trace.Kind, len(trace.Slices), how)))
	}
	return list, nil
}

// outside says that a trace lies beside the recording, where it does: most likely
// its file was copied, or is of another run.
func outside(r *recording.Reader, list []export.Slice) string {
	first, last, ok := r.Span()
	if !ok || len(list) == 0 {
		return ""
	}
	from, to := list[0].From, list[0].To
	for i := range list {
		from, to = min(from, list[i].From), max(to, list[i].To)
	}
	switch {
	case from > last.UnixNano():
		return "all of it is " + words.Duration(time.Duration(from-last.UnixNano())) + " after the recording: is it of this run? --metal-start says when it began"
	case to < first.UnixNano():
		return "all of it is " + words.Duration(time.Duration(first.UnixNano()-to)) + " before the recording: is it of this run? --metal-start says when it began"
	}
	return ""
}

func (e *exportCmd) convert(r *recording.Reader, f *exportFormat, large uint64, laid []export.Slice, w io.Writer) error {
	if f.sink == nil {
		at, err := replay.Moment(r, "--at", e.at)
		if err != nil {
			return err
		}
		body, err := export.Profile(r, at)
		if err == nil {
			_, err = w.Write(body)
		}
		return err
	}
	first, _, _ := r.Span()
	return export.Write(r, export.Options{Large: large, All: !f.trace}, laid, f.sink(w, first))
}
