package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/ttmon/ttmon/internal/base/replace"
	"github.com/ttmon/ttmon/internal/past/promapi"
)

// Options of a Manager.
type Options struct {
	Path      string // of the file of rules; may be empty
	StateFile string // where firing alerts are kept over a restart
	Interval  time.Duration
	Queryable storage.Queryable
	// Changed receives alerts that began to fire or resolved, silenced ones
	// included, one rule and status at a time.
	Changed func([]*Alert)
	// Send receives the alerts to notify about.
	Send func([]*Alert)
	Log  *slog.Logger
}

// Manager evaluates rules.
type Manager struct {
	opt     Options // Path and Interval: as they were at first
	engine  *promql.Engine
	changed chan struct{} // path or interval have

	mu       sync.Mutex
	path     string
	interval time.Duration
	set      Set
	fileAt   time.Time // of the file that set was read from
	fileErr  error
	active   map[string]map[string]*Alert // by rule, then by labels
	health   map[string]*health
}

// health is how a rule's last evaluation went.
type health struct {
	at   time.Time
	took time.Duration
	err  error
}

// New returns a manager with the rules of o.Path. A file that is wrong is an
// error.
func New(o Options) (*Manager, error) {
	m := &Manager{
		opt: o, engine: promapi.NewEngine(), changed: make(chan struct{}, 1), path: o.Path, interval: o.Interval,
		active: map[string]map[string]*Alert{}, health: map[string]*health{},
	}
	var err error
	if m.set, err = Load(o.Path); err != nil {
		return nil, err
	}
	m.fileAt = modified(o.Path)
	m.restore()
	return m, nil
}

// Configure changes where the rules of one's own are, and how often all are
// evaluated.
func (m *Manager) Configure(path string, interval time.Duration) {
	m.mu.Lock()
	if path != m.path {
		m.path, m.fileAt = path, time.Time{}.Add(1) // read at the next evaluation
	}
	m.interval = interval
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *Manager) configured() (path string, interval time.Duration, fileAt time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.path, m.interval, m.fileAt
}

// Run evaluates until ctx is done.
func (m *Manager) Run(ctx context.Context) {
	_, interval, _ := m.configured()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.changed:
			_, interval, _ = m.configured()
			tick.Reset(interval)
		case <-tick.C:
			m.reload()
			m.Evaluate(ctx, time.Now())
		}
	}
}

func modified(path string) time.Time {
	st, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// reload reads the file again when it has changed. A wrong one changes
// nothing, and is said.
func (m *Manager) reload() {
	path, _, before := m.configured()
	at := modified(path)
	if at.Equal(before) {
		return
	}
	set, err := Load(path)
	m.mu.Lock()
	m.fileAt = at
	m.fileErr = err
	if err == nil {
		m.set = set
	}
	m.mu.Unlock()
	if err != nil {
		m.opt.Log.Error("cannot reload alert rules; keeping the current ones", "err", err)
		return
	}
	m.opt.Log.Info("alert rules loaded", "rules", len(set.Rules), "silences", len(set.Silences))
}

// Evaluate looks at every rule that is due.
func (m *Manager) Evaluate(ctx context.Context, now time.Time) {
	m.mu.Lock()
	set := m.set
	m.mu.Unlock()
	dirty := false
	for i := range set.Rules {
		r := &set.Rules[i]
		m.mu.Lock()
		h := m.health[r.Name]
		if h == nil {
			h = &health{}
			m.health[r.Name] = h
		}
		due := h.at.IsZero() || now.Sub(h.at) >= r.Every.Duration || now.Before(h.at)
		m.mu.Unlock()
		if !due {
			continue
		}
		begun := time.Now()
		found, err := m.evaluate(ctx, r.Expr, now)
		if ctx.Err() != nil {
			return
		}
		m.mu.Lock()
		newFailure := err != nil && h.err == nil
		h.at, h.took, h.err = now, time.Since(begun), err
		m.mu.Unlock()
		if err != nil { // what it does not know it does not change
			if newFailure {
				m.opt.Log.Warn("cannot evaluate alert rule", "rule", r.Name, "err", err)
			}
			continue
		}
		dirty = m.apply(ctx, r, &set, found, now) || dirty
	}
	if m.dropRemoved(&set, now) || dirty {
		m.save()
	}
}

// evaluate evaluates an expression.
func (m *Manager) evaluate(ctx context.Context, expr string, now time.Time) ([]sampleOf, error) {
	v, err := m.vector(ctx, expr, now)
	if err != nil {
		return nil, err
	}
	list := make([]sampleOf, len(v))
	for i := range v {
		list[i] = sampleOf{v[i].Metric.Map(), v[i].F}
	}
	return list, nil
}

func (m *Manager) vector(ctx context.Context, expr string, now time.Time) (promql.Vector, error) {
	q, err := m.engine.NewInstantQuery(ctx, m.opt.Queryable, nil, expr, now)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Err
	}
	switch v := res.Value.(type) {
	case promql.Vector:
		return slices.Clone(v), nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	}
	return nil, errors.New("the expression gives neither a vector nor a number")
}

// apply updates the alerts of a rule and reports those that changed.
func (m *Manager) apply(ctx context.Context, r *Rule, set *Set, found []sampleOf, now time.Time) (dirty bool) {
	m.mu.Lock()
	active := m.active[r.Name]
	if active == nil {
		active = map[string]*Alert{}
		m.active[r.Name] = active
	}
	before := len(active)
	changed := step(r, active, found, now)
	current := slices.Collect(maps.Values(active))
	m.mu.Unlock()
	for _, a := range append(current, changed...) {
		if a.Status != Resolved || a.Annotations == nil {
			notes := m.annotate(ctx, r, a, now)
			m.mu.Lock()
			a.Annotations = notes
			m.mu.Unlock()
		}
	}
	dirty = len(changed) > 0 || len(active) != before
	return m.notifyChanges(set, current, changed, now) || dirty
}

// notifyChanges passes on what changed, and sends what must be sent: a firing alert
// once, when no silence covers it, and its end if its beginning was sent.
func (m *Manager) notifyChanges(set *Set, current, changed []*Alert, now time.Time) (dirty bool) {
	var fire, end, begun, ended []*Alert
	m.mu.Lock()
	for _, a := range current {
		a.Reason, a.Silenced = set.silenced(a.Labels, now)
		if a.Status == Firing && !a.Silenced && !a.Notified {
			a.Notified = true
			fire = append(fire, a.copy())
		}
	}
	for _, a := range changed {
		if a.Status == Resolved {
			ended = append(ended, a.copy())
			if a.Notified {
				end = append(end, a.copy())
			}
		} else {
			begun = append(begun, a.copy())
		}
	}
	m.mu.Unlock()
	for _, list := range [][]*Alert{begun, ended} {
		if len(list) > 0 && m.opt.Changed != nil {
			m.opt.Changed(ordered(list))
		}
	}
	for _, list := range [][]*Alert{fire, end} {
		if len(list) > 0 && m.opt.Send != nil {
			m.opt.Send(ordered(list))
		}
	}
	return len(fire)+len(end) > 0
}

// ordered sorts alerts by the number of the device.
func ordered(list []*Alert) []*Alert {
	number := func(a *Alert) int {
		n, err := strconv.Atoi(a.Labels["device"])
		if err != nil {
			return -1 // those of the host first
		}
		return n
	}
	slices.SortFunc(list, func(a, b *Alert) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(key(a.Labels), key(b.Labels)))
	})
	return list
}

func (a *Alert) copy() *Alert {
	c := *a
	c.Labels, c.Annotations = maps.Clone(a.Labels), maps.Clone(a.Annotations)
	return &c
}

// dropRemoved resolves the alerts of rules that are not there any more.
func (m *Manager) dropRemoved(set *Set, now time.Time) (dirty bool) {
	var gone []*Alert
	m.mu.Lock()
	for name, active := range m.active {
		if slices.ContainsFunc(set.Rules, func(r Rule) bool { return r.Name == name }) {
			continue
		}
		for _, a := range active {
			if a.Status == Firing {
				a.Status, a.ResolvedAt = Resolved, now
				gone = append(gone, a)
			}
		}
		delete(m.active, name)
		delete(m.health, name)
		dirty = true
	}
	m.mu.Unlock()
	m.notifyChanges(set, nil, gone, now)
	return dirty
}

// Active lists alerts, worst and oldest first.
func (m *Manager) Active() []*Alert {
	m.mu.Lock()
	var list []*Alert
	for _, active := range m.active {
		for _, a := range active {
			list = append(list, a.copy())
		}
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b *Alert) int {
		if x, y := rank(a), rank(b); x != y {
			return x - y
		}
		if !a.ActiveAt.Equal(b.ActiveAt) {
			return a.ActiveAt.Compare(b.ActiveAt)
		}
		return cmp.Compare(key(a.Labels), key(b.Labels))
	})
	return list
}

func rank(a *Alert) int {
	n := map[string]int{"critical": 0, "warning": 1, "info": 2}[a.Severity()]
	if a.Status == Pending {
		n += 10
	}
	if a.Silenced {
		n += 20
	}
	return n
}

// save keeps the alerts, so that a restart sends nothing twice.
func (m *Manager) save() {
	if m.opt.StateFile == "" {
		return
	}
	b, err := json.Marshal(m.Active())
	if err == nil {
		err = os.MkdirAll(filepath.Dir(m.opt.StateFile), 0o700)
	}
	if err == nil {
		err = replace.File(m.opt.StateFile, b, 0o600)
	}
	if err != nil {
		m.opt.Log.Warn("cannot save alert state", "err", err)
	}
}

// restore reads what save kept. What cannot be read is as if nothing fired.
func (m *Manager) restore() {
	b, err := os.ReadFile(m.opt.StateFile)
	if err != nil {
		return
	}
	var list []*Alert
	if json.Unmarshal(b, &list) != nil {
		return
	}
	for _, a := range list {
		if a == nil || a.Name() == "" || a.Status != Pending && a.Status != Firing {
			continue
		}
		if m.active[a.Name()] == nil {
			m.active[a.Name()] = map[string]*Alert{}
		}
		m.active[a.Name()][key(a.Labels)] = a
	}
}
