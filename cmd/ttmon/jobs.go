package main

import (
	"context"
	"encoding/json"
	"errors"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/exit"
	"github.com/ttmon/ttmon/internal/host"
	"github.com/ttmon/ttmon/internal/jobs"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/when"
)

// jobsCmd is the command ttmon jobs with its flags.
type jobsCmd struct {
	*app
	since, user     string
	limit           int
	json, csv, left bool
}

func newJobs(a *app) *cobra.Command {
	j := &jobsCmd{app: a}
	cmd := &cobra.Command{
		Use:   "jobs [JOB…]",
		Short: "List Slurm jobs and Kubernetes pods with their peak use of devices",
		Long: `Lists what jobs used of the devices: for each Slurm job and each Kubernetes pod that
ttmond has seen at a device, who ran it, when, and the most memory that its
processes held together. Ended jobs are remembered. JOB narrows it to some, by id
or by the name of a pod.

ttmond looks every second, so a peak is at least what is said (≥); where tt-metal's
own statistics are all there is, it is as good as these (~).

With --left it says what jobs have left behind instead: processes that still hold
devices, and what dead ones left in tt-metal's accounting. That is what the epilog
for Slurm asks (docs/install/slurm.md).

Exit codes: 0 ok; with --left 1 if something is left; 2 bad argument; 3 no ttmond
runs here.`,
		Example: `  ttmon jobs                       the jobs of the last day
  ttmon jobs 4711                  one of them, whenever it was
  ttmon jobs --user anna --since 7d --csv
  ttmon jobs --left 4711           what it has left behind`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return j.run(args) },
	}
	f := cmd.Flags()
	f.StringVar(&j.since, "since", "", "that ran after this `TIME`: a time ago (2h, 7d) or a moment (2026-11-15T03:00) (default 1d)")
	f.StringVarP(&j.user, "user", "u", "", "only of this `USER`, by name or number")
	f.IntVarP(&j.limit, "lines", "n", 0, "at most the last `N` jobs")
	f.BoolVar(&j.left, "left", false, "what the jobs have left behind")
	f.BoolVar(&j.json, "json", false, "JSON in the ttmon.jobs/1 contract")
	f.BoolVar(&j.csv, "csv", false, "CSV: a line for each device of each job")
	return cmd
}

func (j *jobsCmd) run(ids []string) error {
	q, err := j.query(ids)
	if err != nil {
		return err
	}
	c, err := host.Remembering(j.where)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer, err := c.Jobs(ctx, q)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return exit.With(exit.Unsupported, "this ttmond keeps no account of jobs (history.enabled in its configuration)")
	case err != nil:
		return exit.With(exit.Internal, "%w", err)
	}
	return j.print(answer)
}

func (j *jobsCmd) query(ids []string) (q jobs.Query, err error) {
	switch {
	case j.json && j.csv:
		return q, exit.Usage("--json and --csv cannot be used together")
	case j.left && j.csv:
		return q, exit.Usage("--left and --csv cannot be used together")
	case j.limit < 0:
		return q, exit.Usage("-n: %d is not a number of jobs", j.limit)
	}
	q = jobs.Query{IDs: ids, Limit: j.limit}
	since := j.since
	if since == "" && len(ids) == 0 {
		since = "1d"
	}
	if since != "" {
		if q.Since, err = when.Ago("--since", since, time.Now()); err != nil {
			return q, err
		}
	}
	if j.user != "" {
		uid, err := userID(j.user)
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
