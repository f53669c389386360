package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/replace"
	"github.com/ttmon/ttmon/internal/past/alert"
)

// Message is one notification: alerts of one rule that began to fire, or
// ended, together.
type Message struct {
	ID     string         `json:"id"`
	Host   string         `json:"host"`
	Time   time.Time      `json:"time"`
	Status alert.Status   `json:"status"` // firing or resolved
	Alerts []*alert.Alert `json:"alerts"`
}

// Target receives messages.
type Target interface {
	Name() string // of the kind and the place, without secrets
	Send(ctx context.Context, m *Message) error
}

// permanent is an error that a retry does not fix.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Bounds of a queue.
const (
	maxQueue    = 200
	sendTimeout = 15 * time.Second
	maxAge      = 24 * time.Hour // of a message that its target does not accept
)

// Outbox holds what is to be sent.
type Outbox struct {
	path  string // "" keeps nothing over a restart
	log   *slog.Logger
	retry time.Duration // the first pause after a failure
	limit time.Duration // of one attempt

	saving  sync.Mutex // one at a time writes the file, so that the last state is the one that stays
	unsaved bool       // the file could not be written, and that was said

	mu      sync.Mutex
	workers []*worker
	start   func(*worker) // while Run runs
	queues  map[string][]*Message
	dropped uint64
	next    uint64
}

// worker sends to one target.
type worker struct {
	t     Target
	wake  chan struct{}
	leave chan struct{}   // closed: it is not to begin another message
	ended chan struct{}   // closed when it has left
	after <-chan struct{} // that of the one that had the same target before; nil: none
}

// New returns an outbox with what one before it left at path.
func New(path string, targets []Target, log *slog.Logger) *Outbox {
	o := &Outbox{path: path, log: log, retry: time.Second, limit: sendTimeout, queues: map[string][]*Message{}}
	o.SetTargets(targets)
	if b, err := os.ReadFile(path); err == nil {
		var left map[string][]*Message
		if json.Unmarshal(b, &left) == nil {
			for _, t := range targets {
				o.queues[t.Name()] = left[t.Name()]
			}
		}
	}
	return o
}

// Run sends until ctx is done. What is not sent by then stays in the file.
func (o *Outbox) Run(ctx context.Context) {
	var wait sync.WaitGroup
	o.mu.Lock()
	o.start = func(w *worker) {
		wait.Go(func() {
			defer close(w.ended)
			if w.after != nil {
				<-w.after
			}
			o.serve(ctx, w)
		})
	}
	for _, w := range o.workers {
		o.start(w)
	}
	o.mu.Unlock()
	<-ctx.Done()
	o.mu.Lock()
	o.start = nil // no target is added any more
	o.mu.Unlock()
	wait.Wait()
}

// SetTargets replaces the targets. What waits for a target that stays is sent
// to it; what waits for one that goes is dropped, and said.
func (o *Outbox) SetTargets(targets []Target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := map[string]*worker{}
	for _, w := range o.workers {
		close(w.leave)
		before[w.t.Name()] = w
	}
	o.workers = nil
	for _, t := range targets {
		w := &worker{t: t, wake: make(chan struct{}, 1), leave: make(chan struct{}), ended: make(chan struct{})}
		if old := before[t.Name()]; old != nil && o.start != nil {
			w.after = old.ended // a message that is under way is not sent twice
		}
		delete(before, t.Name())
		o.workers = append(o.workers, w)
		if o.start != nil {
			o.start(w)
		}
	}
	for name := range before {
		if n := len(o.queues[name]); n > 0 {
			o.log.Warn("dropping queued alerts for removed target", "target", name, "messages", n)
			o.dropped += uint64(n)
		}
		delete(o.queues, name)
	}
}

// Put queues a message for every target.
func (o *Outbox) Put(host string, list []*alert.Alert) {
	if len(list) == 0 {
		return
	}
	o.mu.Lock()
	workers := o.workers
	o.next++
	now := time.Now()
	m := &Message{ID: fmt.Sprintf("%d-%d", now.UnixMilli(), o.next), Host: host, Time: now.UTC(), Status: list[0].Status, Alerts: list}
	for _, w := range workers {
		name := w.t.Name()
		q := append(o.queues[name], m)
		if len(q) > maxQueue {
			o.dropped += uint64(len(q) - maxQueue)
			q = q[len(q)-maxQueue:]
		}
		o.queues[name] = q
	}
	o.mu.Unlock()
	if len(workers) == 0 {
		return
	}
	o.save()
	for _, w := range workers {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Dropped is how many messages were given up.
func (o *Outbox) Dropped() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}

// serve sends a target's messages one by one, in order.
func (o *Outbox) serve(ctx context.Context, w *worker) {
	t := w.t
	pause, failing := o.retry, false
	for {
		m := o.first(t.Name())
		if m == nil {
			select {
			case <-ctx.Done():
				return
			case <-w.leave:
				return
			case <-w.wake:
			}
			continue
		}
		select {
		case <-w.leave:
			return
		default:
		}
		brief, cancel := context.WithTimeout(ctx, o.limit)
		err := t.Send(brief, m)
		if err != nil && brief.Err() != nil {
			err = fmt.Errorf("no answer within %v: %w", o.limit, err)
		}
		cancel()
		if ctx.Err() != nil && err != nil {
			return
		}
		_, hopeless := errors.AsType[permanent](err)
		switch {
		case err == nil:
			if failing {
				o.log.Info("target accepts alerts again", "target", t.Name())
			}
			pause, failing = o.retry, false
			o.done(t.Name(), m, false)
			continue
		case hopeless || time.Since(m.Time) > maxAge:
			o.log.Error("target rejected alert; dropping it", "target", t.Name(), "err", err)
			o.done(t.Name(), m, true)
			continue
		case !failing:
			o.log.Warn("cannot send alert; will retry", "target", t.Name(), "err", err)
			failing = true
		}
		select {
		case <-ctx.Done():
			return
		case <-w.leave:
			return
		case <-time.After(pause):
			pause = min(2*pause, time.Minute)
		}
	}
}

func (o *Outbox) first(name string) *Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q := o.queues[name]; len(q) > 0 {
		return q[0]
	}
	return nil
}

// done takes a message off a queue, unless the queue has dropped it itself.
func (o *Outbox) done(name string, m *Message, lost bool) {
	o.mu.Lock()
	if q := o.queues[name]; len(q) > 0 && q[0] == m {
		o.queues[name] = q[1:]
	}
	if lost {
		o.dropped++
	}
	o.mu.Unlock()
	o.save()
}

// save writes what is still to be sent.
func (o *Outbox) save() {
	if o.path == "" {
		return
	}
	o.saving.Lock()
	defer o.saving.Unlock()
	o.mu.Lock()
	b, err := json.Marshal(o.queues)
	o.mu.Unlock()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(o.path), 0o700)
	}
	if err == nil {
		err = replace.File(o.path, b, 0o600)
	}
	if err != nil && !o.unsaved {
		o.log.Warn("cannot save alert queue", "err", err)
	}
	o.unsaved = err != nil
}
