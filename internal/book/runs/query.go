package runs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Query is which runs are asked for. Zero values ask for all.
type Query struct {
	// Names are numbers of runs (r318, 318); a number that no run has is that of a
	// process or a job. With Jobs they are ids or names of jobs.
	Names   []string  `param:"id" help:"of a run (r318), a process or a job; may be given again"`
	Jobs    bool      `param:"jobs" help:"true: all runs of each Slurm job or pod that has such a run; id is then that of a job, or its name"`
	UID     *int      `param:"uid" help:"of their user"`
	Since   time.Time `param:"since" help:"those that ran at this time or later"`
	Until   time.Time `param:"until" help:"those that began before this time"`
	Device  string    `param:"device" help:"that they used: index or bus id"`
	Job     string    `param:"job" help:"that they belong to"` // by id or name
	Command string    `param:"command" help:"exactly this command line"`
	Text    string    `param:"text" help:"in the command, the user or the job"` // also in the name
	Leaked  bool      `param:"leaked" help:"true: only those that left memory behind"`
	Failed  bool      `param:"failed" help:"true: only those that are known to have ended badly"`
	Running *bool     `param:"running" help:"true or false: only those that have not, or have, ended"`
	Limit   int       `param:"limit" help:"the newest so many"` // 0: MaxAnswer
	// Visible reports whether the asking user may see a run; nil: all.
	Visible func(uid int) bool
	// Show leaves out of a copy of a run what the asking user may not see, before it
	// is searched; nil: nothing. Else a search for a text would find out the rest.
	Show func(*Run)
}

// MaxAnswer bounds an answer.
const MaxAnswer = 10_000

// ParseID reads the number of a run: r318 or 318.
func ParseID(name string) (id uint64, ok bool) {
	id, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(name), "r"), 10, 53)
	return id, err == nil && id > 0
}

// RunName is how a run is named: r318.
func (r *Run) RunName() string { return fmt.Sprintf("r%d", r.ID) }

// Matches reports whether a run matches the query, except for its name.
func (q *Query) Matches(r *Run) bool {
	if q.Command != "" || q.Job != "" || q.Text != "" {
		r = q.shown(r)
	}
	switch {
	case q.Visible != nil && !q.Visible(r.UID),
		q.UID != nil && r.UID != *q.UID,
		!q.Since.IsZero() && r.End.Kind != Running && r.Ended().Before(q.Since),
		!q.Until.IsZero() && r.Start.After(q.Until),
		q.Leaked && len(r.Left) == 0,
		q.Failed && !r.End.Failed(),
		q.Running != nil && *q.Running != (r.End.Kind == Running),
		q.Command != "" && r.Command != q.Command,
		q.Job != "" && !r.inJob(q.Job),
		q.Jobs && r.Job == nil,
		q.Device != "" && !r.used(q.Device),
		q.Text != "" && !r.contains(strings.ToLower(q.Text)):
		return false
	}
	return true
}

// shown is the run as the asking user may see it.
func (q *Query) shown(r *Run) *Run {
	if q.Show == nil {
		return r
	}
	c := *r
	q.Show(&c)
	return &c
}

// Ended is when the run was last known to have a device.
func (r *Run) Ended() time.Time {
	if r.End.At.IsZero() {
		return r.Last
	}
	return r.End.At
}

func (r *Run) inJob(name string) bool {
	return r.Job != nil && (r.Job.ID == name || r.Job.Name == name && name != "")
}

func (r *Run) used(device string) bool {
	return slices.ContainsFunc(r.Devices, func(d Device) bool {
		md := model.Device{Index: d.Index, BusID: d.BusID, ASICID: model.Value(d.ASICID)}
		return md.Named(device)
	})
}

func (r *Run) contains(text string) bool {
	list := []string{r.Command, r.Name, r.User, r.Container, r.Unit, r.RunName()}
	if r.Job != nil {
		list = append(list, r.Job.ID, r.Job.Name)
	}
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(strings.ToLower(s), text) })
}

// Named reports whether a run has one of the numbers; with Jobs, whether its job has
// one of the names.
func (q *Query) Named(r *Run) bool {
	if q.Jobs {
		return slices.ContainsFunc(q.Names, q.shown(r).inJob)
	}
	return slices.ContainsFunc(q.Names, func(name string) bool {
		id, ok := ParseID(name)
		return ok && id == r.ID
	})
}

// NamedOtherwise reports whether a process of a run, or its job, has one of the
// names.
func (q *Query) NamedOtherwise(r *Run) bool {
	r = q.shown(r)
	return slices.ContainsFunc(q.Names, func(name string) bool {
		return r.inJob(name) || slices.ContainsFunc(r.Processes, func(p Process) bool { return strconv.Itoa(p.PID) == name })
	})
}
