package main

import (
	"context"
	"encoding/json"
	"errors"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/exit"
	"github.com/ttmon/ttmon/internal/host"
	"github.com/ttmon/ttmon/internal/jobs"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/view/runwords"
	"github.com/ttmon/ttmon/internal/view/text"
)

// jobsCmd is the command ttmon jobs with its flags.
type jobsCmd struct {
	*app
	runFilter
	json, csv, left bool
}

func newJobs(a *app) *cobra.Command {
	j := &jobsCmd{app: a}
	cmd := &cobra.Command{
		Use:   "jobs [JOB…]",
		Short: "List Slurm jobs and Kubernetes pods: the devices they used, how they ended",
		Long: `Lists the jobs whose programs used devices, also those that have ended: of each
Slurm job and each Kubernetes pod who ran it, when, the most memory that its
processes held on each device, the energy that its devices took, how its programs
ended, and what they left. JOB narrows it to some, by id or by the name of a job or
pod. It is ttmon runs by job: --failed lists the jobs with a run that failed, and
ttmon runs --job 4711 the runs of one.

Snapshots are a second apart, so a peak is at least what is said (≥); where tt-metal's
own statistics are all there is, it is as good as these (~).

With --left it says what jobs have left behind instead: processes that still hold
devices, and what dead ones left in tt-metal's accounting. That is what the epilog
for Slurm asks (docs/install/slurm.md).

Exit codes: 0 ok; with --left 1 if something is left; 2 bad argument; 3 no
ttmon-server runs here and nothing was kept.`,
		Example: `  ttmon jobs                       the jobs of the last day
  ttmon jobs 4711                  one job, however old
  ttmon jobs --since yesterday --failed
  ttmon jobs --user anna --since 7d --csv
  ttmon jobs --left 4711           what it left behind`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return j.run(args) },
	}
	f := cmd.Flags()
	j.flags(f, "jobs")
	f.BoolVar(&j.left, "left", false, "show what jobs left behind: processes and stale memory accounting")
	f.BoolVar(&j.json, "json", false, "print JSON (schema ttmon.jobs/1)")
	f.BoolVar(&j.csv, "csv", false, "print CSV, one line per job and device")
	return cmd
}

func (j *jobsCmd) run(ids []string) error {
	switch {
	case j.json && j.csv:
		return exit.Usage("--json and --csv cannot be used together")
	case j.left && j.csv:
		return exit.Usage("--left and --csv cannot be used together")
	}
	q, err := j.query(ids, len(ids) == 0)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer, err := j.find(ctx, q)
	if err != nil {
		return err
	}
	return j.print(answer)
}

// find asks the ttmon-server, or makes jobs of the runs that ttmon top kept. What is
// left now only the server knows.
func (j *jobsCmd) find(ctx context.Context, q runs.Query) (*jobs.Answer, error) {
	if j.where.Direct && !j.left {
		return j.ofOwnRuns(q)
	}
	c, err := host.HistoryClient(j.where)
	switch {
	case errors.Is(err, host.ErrNoServer) && !j.left:
		return j.ofOwnRuns(q)
	case err != nil:
		return nil, err
	}
	defer c.Close()
	answer, err := c.Jobs(ctx, q)
	away := errors.Is(err, client.ErrElsewhere) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT)
	switch {
	case away && !j.left:
		return j.ofOwnRuns(q)
	case errors.Is(err, client.ErrNotFound):
		return nil, exit.With(exit.Unsupported, "this ttmon-server keeps no account of jobs (history.enabled in its configuration)")
	case away:
		return nil, exit.With(exit.Unsupported, "%w", err)
	case err != nil:
		return nil, exit.With(exit.Internal, "%w", err)
	}
	return answer, nil
}

func (j *jobsCmd) ofOwnRuns(q runs.Query) (*jobs.Answer, error) {
	found, err := j.runs().Own(runs.Query{Jobs: true, Since: q.Since, Until: q.Until})
	if err != nil {
		return nil, err
	}
	answer := &jobs.Answer{Schema: jobs.Schema, Time: found.Time, Jobs: []jobs.Account{}}
	for _, job := range jobs.Find(nil, found.Runs, &q) {
		answer.Jobs = append(answer.Jobs, job.Now(nil))
	}
	runwords.PresentJobs(answer.Jobs)
	return answer, nil
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

func (j *jobsCmd) print(a *jobs.Answer) error {
	left := text.AppendLeft(nil, a)
	var err error
	switch {
	case j.json:
		var b []byte
		if b, err = json.MarshalIndent(a, "", "  "); err == nil {
			err = j.Output("").Write(append(b, '\n'))
		}
	case j.csv:
		err = j.Output("").Write(text.AppendJobsCSV(nil, a))
	case j.left:
		err = j.PrintText(left)
	default:
		err = j.PrintText(text.AppendJobs(nil, a, text.Options{}))
	}
	if err != nil {
		return err
	}
	if j.left && len(left) > 0 {
		return exit.Silent(1)
	}
	return nil
}
