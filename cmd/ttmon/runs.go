package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/exit"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/runs/find"
	"github.com/ttmon/ttmon/internal/view/runwords"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/when"
)

// runsCmd is the command ttmon runs with its flags.
type runsCmd struct {
	*app
	runFilter
	job       string
	json, csv bool
}

// runFilter is the flags by which runs and jobs are chosen.
type runFilter struct {
	since, until, user, device, match string
	limit                             int
	leaked, failed, running           bool
}

func (r *runFilter) flags(f *pflag.FlagSet, what string) {
	f.StringVar(&r.since, "since", "", "only those that ran after `TIME`: an age (2h, 7d), today, yesterday or a date (2026-11-15T03:00) (default 1d)")
	f.StringVar(&r.until, "until", "", "only those that started before `TIME`")
	f.StringVarP(&r.user, "user", "u", "", "only those of this `USER`, by name or uid")
	f.StringVarP(&r.device, "id", "i", "", "only those that used this `DEVICE`: index, bus id or ASIC id")
	f.StringVar(&r.match, "match", "", "only those with this `TEXT` in command, user or job")
	f.IntVarP(&r.limit, "lines", "n", 0, "print at most the last `N` "+what)
	f.BoolVar(&r.leaked, "leaked", false, "only those that left memory accounted after they exited")
	f.BoolVar(&r.failed, "failed", false, "only those that failed: non-zero exit code, signal, out of memory")
	f.BoolVar(&r.running, "running", false, "only those that are still running")
}

func newRuns(a *app) *cobra.Command {
	r := &runsCmd{app: a}
	cmd := &cobra.Command{
		Use:   "runs [RUN…]",
		Short: "List the programs that used devices: when, how they ended, what they used",
		Long: `Lists the programs that used devices, also those that have ended: who ran them,
when and for how long, how they ended, the most memory they held, the energy that
their devices took meanwhile, and what they left behind. RUN shows one with all its
figures, by its number (r318), or by the number of a process or job.

A run is a process that has a device open, with those of its children that have one
open, too. ttmon-server keeps them (history.runs). Where none runs, ttmon top keeps
those that it sees, for its user (top.runs), and this command lists them. Snapshots
are a second apart, so a peak is at least what is said (≥).
Energy is that of the whole device: where others used it meanwhile it is marked (~).

Exit codes: 0 ok; 2 bad argument; 3 no ttmon-server runs here and nothing was kept;
6 no run of this number.`,
		Example: `  ttmon runs                          the runs of the last day
  ttmon runs r318                     one run in full
  ttmon runs --since yesterday --leaked
  ttmon runs --user anna --failed --since 7d --csv
  ttmon runs -i 5 --match serve.py    what ran on device 5`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return r.run(args) },
	}
	f := cmd.Flags()
	r.flags(f, "runs")
	f.StringVar(&r.job, "job", "", "only those of this `JOB`: a Slurm job id or a pod's name")
	f.BoolVar(&r.json, "json", false, "print JSON (schema ttmon.runs/1)")
	f.BoolVar(&r.csv, "csv", false, "print CSV, one line per run and device")
	return cmd
}

func (r *runsCmd) run(names []string) error {
	if r.json && r.csv {
		return exit.Usage("--json and --csv cannot be used together")
	}
	q, err := r.query(names, len(names) == 0 && r.job == "")
	if err != nil {
		return err
	}
	q.Job = r.job
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	from := r.runs()
	answer, err := from.Runs(ctx, q)
	if err != nil {
		return err
	}
	if len(names) > 0 && len(answer.Runs) == 0 {
		return find.NoSuchRun(names[0])
	}
	if len(names) > 0 {
		addLines(ctx, from, answer.Runs)
	}
	return r.print(answer, len(names) > 0)
}

// runs finds runs. It says so where they are only those of ttmon top.
func (a *app) runs() *find.Finder {
	return &find.Finder{Where: a.where, OnlyOwn: func() {
		fmt.Fprintln(a.Stderr, "ttmon: no ttmon-server keeps runs here: these are the ones that ttmon top has seen")
	}}
}

// addLines completes runs of this user, or all for root, with their lines of code. A
// ttmon-server of another user does not get them.
func addLines(ctx context.Context, from *find.Finder, list []runs.Run) {
	from.WithLines(ctx, func(find find.LinesOf) {
		for i := range list {
			if uid := os.Getuid(); list[i].Lines == nil && (uid == 0 || uid == list[i].UID) {
				list[i].AddLines(find, runs.NotTraced)
				if list[i].Formatted != nil {
					runwords.PresentOne(&list[i])
				}
			}
		}
	})
}

// query is what the flags ask for; of the last day, unless they say when.
func (r *runFilter) query(names []string, lately bool) (q runs.Query, err error) {
	if r.limit < 0 {
		return q, exit.Usage("-n: %d is not a number", r.limit)
	}
	q = runs.Query{Names: names, Device: r.device, Text: r.match, Leaked: r.leaked, Failed: r.failed, Limit: r.limit}
	if r.running {
		q.Running = &r.running
	}
	since := r.since
	if since == "" && lately {
		since = "1d"
	}
	now := time.Now()
	for _, x := range []struct {
		flag, text string
		to         *time.Time
	}{{"--since", since, &q.Since}, {"--until", r.until, &q.Until}} {
		if x.text == "" {
			continue
		}
		if *x.to, err = when.Ago(x.flag, x.text, now); err != nil {
			return q, err
		}
	}
	if r.user != "" {
		uid, err := userID(r.user)
		if err != nil {
			return q, err
		}
		q.UID = &uid
	}
	return q, nil
}

func (r *runsCmd) print(a *runs.Answer, whole bool) error {
	switch {
	case r.json:
		b, err := json.MarshalIndent(a, "", "  ")
		if err != nil {
			return exit.With(exit.Internal, "%w", err)
		}
		return r.Output("").Write(append(b, '\n'))
	case r.csv:
		return r.Output("").Write(text.AppendRunsCSV(nil, a))
	}
	o, err := r.TextOptions(r.Stdout)
	if err != nil {
		return err
	}
	if !whole {
		return r.PrintText(text.AppendRuns(nil, a, o))
	}
	var b []byte
	for i := range a.Runs {
		b = text.AppendRun(b, &a.Runs[i], a.Time, o)
	}
	return r.PrintText(b)
}
