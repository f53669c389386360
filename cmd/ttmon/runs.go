package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/when"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/cli/find"
	"github.com/ttmon/ttmon/internal/view/text"
)

// runsCmd is the command ttmon runs with its flags.
type runsCmd struct {
	*app
	runFilter
	job, by         string
	json, csv, left bool
}

// byJob is the value of --by that groups runs by their jobs.
const byJob = "job"

// runFilter is the flags by which runs are chosen.
type runFilter struct {
	since, until, user, device, match string
	limit                             int
	leaked, failed, running           bool
}

func (r *runsCmd) flags(f *pflag.FlagSet) {
	f.StringVar(&r.since, "since", "", "only those that ran after `TIME`: an age (2h, 7d), today, yesterday or a date (2026-11-15T03:00) (default 1d)")
	f.StringVar(&r.until, "until", "", "only those that started before `TIME`")
	f.StringVarP(&r.user, "user", "u", "", "only those of this `USER`, by name or uid")
	f.StringVarP(&r.device, "id", "i", "", "only those that used this `DEVICE`: index, bus id or ASIC id (also -d)")
	addHidden(f, "device", "d", f.Lookup("id").Value)
	f.StringVar(&r.match, "match", "", "only those with this `TEXT` in command, user or job")
	f.IntVarP(&r.limit, "lines", "n", 0, "print at most the last `N`")
	f.BoolVar(&r.leaked, "leaked", false, "only those that left memory accounted after they exited")
	f.BoolVar(&r.failed, "failed", false, "only those that failed: non-zero exit code, signal, out of memory")
	f.BoolVar(&r.running, "running", false, "only those that are still running")
	f.BoolVar(&r.left, "left", false, "with --by job: show what jobs left behind: processes and stale memory accounting")
	f.BoolVar(&r.json, "json", false, "print JSON (schema ttmon.runs/1; by job ttmon.jobs/1)")
	f.BoolVar(&r.csv, "csv", false, "print CSV, one line per run or job and device")
}

// newJobs is another name of ttmon runs --by job.
func newJobs(a *app) *cobra.Command {
	r := &runsCmd{app: a, by: byJob}
	cmd := &cobra.Command{
		Use:    "jobs [JOB…]",
		Short:  "List Slurm jobs and Kubernetes pods: ttmon runs --by job",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE:   func(_ *cobra.Command, args []string) error { return r.run(args) },
	}
	r.flags(cmd.Flags())
	return cmd
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
are a second apart, so a peak is at least what is said (≥). Where the program kept a
ledger that ttmond read (ttmon run, libttmon), it is exact, also of a run of less than
a second.
Energy is that of the whole device: where others used it meanwhile it is marked (~).

--by job groups them by Slurm job and Kubernetes pod: of each who ran it, when, the
most memory that its runs held together on each device, the energy, how its runs
ended, and what they left. RUN is then a job, by its id or name; a job is listed if
one of its runs is asked for. --left says what jobs have left behind instead:
processes that still hold devices, and what dead ones left in tt-metal's accounting.
That is what the epilog for Slurm asks (docs/install/slurm.md).

Exit codes: 0 ok; with --left 1 if something is left; 2 bad argument; 3 no
ttmon-server runs here and nothing was kept; 6 no run of this number.`,
		Example: `  ttmon runs                          the runs of the last day
  ttmon runs r318                     one run in full
  ttmon runs --since yesterday --leaked
  ttmon runs --user anna --failed --since 7d --csv
  ttmon runs -i 5 --match serve.py    what ran on device 5
  ttmon runs --by job --since 7d      the jobs of the last week
  ttmon runs --by job --left 4711     what a job left behind`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return r.run(args) },
	}
	f := cmd.Flags()
	r.flags(f)
	f.StringVar(&r.job, "job", "", "only those of this `JOB`: a Slurm job id or a pod's name")
	f.StringVar(&r.by, "by", "", "group them `BY` job")
	return cmd
}

func (r *runsCmd) run(names []string) error {
	switch {
	case r.json && r.csv:
		return exit.Usage("--json and --csv cannot be used together")
	case r.by != "" && r.by != byJob:
		return exit.Usage("--by: %q is not supported: use job", r.by)
	case r.left && r.by != byJob:
		return exit.Usage("--left needs --by job")
	case r.left && r.csv:
		return exit.Usage("--left and --csv cannot be used together")
	}
	q, err := r.query(names, len(names) == 0 && r.job == "")
	if err != nil {
		return err
	}
	q.Job = r.job
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	from := r.runs()
	if r.by == byJob {
		answer, err := from.Jobs(ctx, q)
		if err != nil {
			return err
		}
		return r.printJobs(answer)
	}
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
		fmt.Fprintln(a.Stderr, "ttmon: no ttmon-server responds: these are your own runs that ttmon top has seen, not those of other users")
	}}
}

// addLines completes runs of this user, or all for root, with their lines of code. A
// ttmon-server of another user does not get them.
func addLines(ctx context.Context, from *find.Finder, list []runs.Run) {
	from.WithLines(ctx, func(find find.LinesOf) {
		for i := range list {
			if uid := os.Getuid(); list[i].Lines == nil && (uid == 0 || uid == list[i].UID) {
				list[i].AddLines(find, runs.NotTraced)
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

// userID is the number of a user who was named by name or number.
func userID(name string) (int, error) {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 {
		return n, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, exit.Usage("--user: no user %q on this host: use a name or a number", name)
	}
	return strconv.Atoi(u.Uid)
}

// printJobs prints jobs. Its exit code says whether they left something, where that was
// asked.
func (r *runsCmd) printJobs(a *runs.JobsAnswer) (err error) {
	left := text.AppendLeft(nil, a)
	switch {
	case r.json:
		err = r.printJSON(a)
	case r.csv:
		err = r.Output("").Write(text.AppendJobsCSV(nil, a))
	case r.left:
		err = r.PrintText(left)
	default:
		err = r.PrintText(text.AppendJobs(nil, a, text.Options{}))
	}
	if err == nil && r.left && len(left) > 0 {
		return exit.Silent(1)
	}
	return err
}

func (r *runsCmd) printJSON(answer any) error {
	b, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	return r.Output("").Write(append(b, '\n'))
}

func (r *runsCmd) print(a *runs.Answer, whole bool) error {
	switch {
	case r.json:
		return r.printJSON(a)
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
