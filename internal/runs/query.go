package runs

import (
	"fmt"
	"net/url"
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
	Names   []string
	UID     *int
	Since   time.Time // ended after, or running
	Until   time.Time // began before
	Device  string    // bus id or index
	Job     string    // by id or name
	Jobs    bool      // whole jobs: all runs of each job that has a run which matches
	Command string    // exactly this one
	Text    string    // in the command, the name, the user or the job
	Leaked  bool      // left memory behind
	Failed  bool      // ended badly
	Running *bool
	Limit   int // the newest so many; 0: MaxAnswer
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

// Values is the query as parameters of a URL.
func (q *Query) Values() url.Values {
	v := url.Values{"id": q.Names}
	text := func(key, s string) {
		if s != "" {
			v.Set(key, s)
		}
	}
	moment := func(key string, t time.Time) {
		if !t.IsZero() {
			v.Set(key, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.UID != nil {
		v.Set("uid", strconv.Itoa(*q.UID))
	}
	moment("since", q.Since)
	moment("until", q.Until)
	text("device", q.Device)
	text("job", q.Job)
	text("command", q.Command)
	text("text", q.Text)
	if q.Jobs {
		v.Set("jobs", "true")
	}
	if q.Leaked {
		v.Set("leaked", "true")
	}
	if q.Failed {
		v.Set("failed", "true")
	}
	if q.Running != nil {
		v.Set("running", strconv.FormatBool(*q.Running))
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// ParseQuery is the inverse of Values.
func ParseQuery(v url.Values) (q Query, err error) {
	q = Query{Names: v["id"], Device: v.Get("device"), Job: v.Get("job"), Command: v.Get("command"), Text: v.Get("text")}
	if text := v.Get("uid"); text != "" {
		uid, err := strconv.Atoi(text)
		if err != nil || uid < 0 {
			return q, fmt.Errorf("uid: %q is not the number of a user", text)
		}
		q.UID = &uid
	}
	for key, t := range map[string]*time.Time{"since": &q.Since, "until": &q.Until} {
		if text := v.Get(key); text != "" {
			if *t, err = time.Parse(time.RFC3339, text); err != nil {
				return q, fmt.Errorf("%s: %q is not a time like 2026-11-15T08:30:00Z", key, text)
			}
		}
	}
	flag := func(key string) (set bool) {
		if text := v.Get(key); text != "" && err == nil {
			if set, err = strconv.ParseBool(text); err != nil {
				err = fmt.Errorf("%s: %q is neither true nor false", key, text)
			}
		}
		return set
	}
	q.Leaked, q.Failed, q.Jobs = flag("leaked"), flag("failed"), flag("jobs")
	if v.Get("running") != "" {
		running := flag("running")
		q.Running = &running
	}
	if text := v.Get("limit"); text != "" && err == nil {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 {
			return q, fmt.Errorf("limit: %q is not a number above 0", text)
		}
	}
	return q, err
}
