// Package find finds runs wherever they are kept, for the commands that list and
// compare them: a ttmon-server, what this user's ttmon top kept where none runs, or
// a recording.
package find

import (
	"cmp"
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/past/runs/own"
)

// Finder finds the runs of a host.
type Finder struct {
	Where host.Options
	// OnlyOwn is called the first time that runs were found which only this user's
	// ttmon top has seen.
	OnlyOwn func()

	noted bool // OnlyOwn was called
}

// errNoRuns is the error where nothing has kept runs.
var errNoRuns = errors.New("no ttmon-server is running, so no runs are recorded: systemctl start ttmon-server, or run ttmon-server as your own user; ttmon top records runs, too, while it is open")

// Runs asks the ttmon-server, or reads what ttmon top kept where none answers.
func (f *Finder) Runs(ctx context.Context, q runs.Query) (*runs.Answer, error) {
	if f.Where.Direct {
		return f.Own(q)
	}
	c, err := host.HistoryClient(f.Where)
	switch {
	case errors.Is(err, host.ErrNoServer):
		return f.Own(q)
	case err != nil:
		return nil, err
	}
	defer c.Close()
	answer, err := c.Runs(ctx, q)
	switch {
	case errors.Is(err, client.ErrNotFound), errors.Is(err, client.ErrElsewhere), errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOENT):
		return f.Own(q)
	case err != nil:
		return nil, exit.With(exit.Internal, "%w", err)
	}
	return answer, nil
}

// Own are the runs that this user's ttmon top has kept.
func (f *Finder) Own(q runs.Query) (*runs.Answer, error) {
	h, err := host.Open(f.Where)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	none := exit.With(exit.Unsupported, "%w", errNoRuns)
	dir := own.Dir(f.Where.Getenv, h.Simulated())
	if dir == "" || f.Where.Root != "" || f.Where.Instead != nil {
		return nil, none
	}
	answer, err := own.Find(dir, q)
	switch {
	case errors.Is(err, own.ErrNone):
		return nil, none
	case err != nil:
		return nil, exit.With(exit.Internal, "%w", err)
	}
	if !f.noted {
		f.noted = true
		f.OnlyOwn()
	}
	return answer, nil
}

// Jobs groups the runs of a query by their jobs, with what these hold and left now.
func (f *Finder) Jobs(ctx context.Context, q runs.Query) (*runs.JobsAnswer, error) {
	q.Jobs = true
	all := q
	// Of all users, and whole: whose a job is depends on who else claims it.
	all.UID, all.Limit = nil, 0
	found, err := f.Runs(ctx, all)
	if err != nil {
		return nil, err
	}
	h, err := host.Open(f.Where)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	now, err := h.Next(ctx)
	if err != nil {
		return nil, err
	}
	return &runs.JobsAnswer{Schema: runs.JobsSchema, Time: now.Time.UTC(), Jobs: runs.ByJob(found.Runs, &q, now), More: found.More}, nil
}

// Run is the last run of a number, or of a process or job.
func (f *Finder) Run(ctx context.Context, name string) (runs.Run, error) {
	answer, err := f.Runs(ctx, runs.Query{Names: []string{name}})
	if err != nil {
		return runs.Run{}, err
	}
	if len(answer.Runs) == 0 {
		return runs.Run{}, NoSuchRun(name)
	}
	return answer.Runs[len(answer.Runs)-1], nil
}

// NoSuchRun is the error of a name that no run has.
func NoSuchRun(name string) error {
	return exit.With(exit.NoDevice, "no such run: %s; ttmon runs --since 90d lists all", name)
}

// LinesOf finds the lines of code of a process.
type LinesOf = func(*runs.Process) (runs.ProcessLines, bool)

// WithLines calls use with a function that finds the lines of code of processes.
// ttmond keeps them for their users, or this user's own ttmon-server where no ttmond
// runs. Without either, use is not called: lines are optional.
func (f *Finder) WithLines(ctx context.Context, use func(LinesOf)) {
	if f.Where.Direct {
		return
	}
	h, err := host.Open(f.Where)
	if err != nil {
		return
	}
	defer h.Close()
	path := cmp.Or(h.Socket(), h.Server())
	if path == "" {
		return
	}
	c := client.New(path)
	defer c.Close()
	use(func(p *runs.Process) (runs.ProcessLines, bool) {
		l, err := c.Lines(ctx, p)
		return l, err == nil
	})
}
