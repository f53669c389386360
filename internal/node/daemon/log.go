package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ParseLevel reads log.level.
func ParseLevel(s string) (l slog.Level, err error) {
	if err := l.UnmarshalText([]byte(s)); err != nil {
		return 0, fmt.Errorf("log.level: %q is not one of debug, info, warn, error", s)
	}
	return l, nil
}

// LogConfig is the section log of a daemon's configuration.
type LogConfig struct {
	Level  string `toml:"level" comment:"debug, info, warn or error."`
	Format string `toml:"format" comment:"text, json, or auto: text, without the time in a systemd unit."`
}

// Check finds mistakes.
func (c *LogConfig) Check() error {
	if !slices.Contains([]string{"auto", "text", "json"}, c.Format) {
		return fmt.Errorf("log.format: %q is not one of auto, text, json", c.Format)
	}
	_, err := ParseLevel(c.Level)
	return err
}

// Logs is where the log goes.
type Logs struct {
	level slog.LevelVar
	queue *queue
}

// NewLog returns the log. It never makes a caller wait: not for a disk that is
// full, not for a terminal that was stopped.
func NewLog(c LogConfig, to io.Writer) (*slog.Logger, *Logs) {
	l := &Logs{queue: newQueue(to)}
	l.SetLevel(c.Level)
	journal := c.Format == "auto" && os.Getenv("JOURNAL_STREAM") != ""
	if c.Format == "json" {
		return slog.New(newThrottle(slog.NewJSONHandler(l.queue, &slog.HandlerOptions{Level: &l.level}))), l
	}
	return slog.New(newThrottle(&lines{to: l.queue, level: &l.level, journal: journal})), l
}

// SetLevel changes log.level.
func (l *Logs) SetLevel(name string) {
	level, _ := ParseLevel(name)
	l.level.Set(level)
}

// Lost counts lines that could not be written.
func (l *Logs) Lost() uint64 { return l.queue.lost.Load() }

// Flush waits until what is queued is written, but not long.
func (l *Logs) Flush() {
	for end := time.Now().Add(flushTime); len(l.queue.entries) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

const flushTime = 100 * time.Millisecond

// Close writes out what is queued.
func (l *Logs) Close() { l.queue.close() }

// lines writes a record as people read it: time, level, sentence, key=value.
type lines struct {
	to      io.Writer
	level   slog.Leveler
	journal bool // systemd adds the time; it wants the level as <N>
	attrs   string
}

func (h *lines) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

func (h *lines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	if h.journal {
		fmt.Fprintf(&b, "<%d>%s", priority(r.Level), r.Message)
	} else {
		fmt.Fprintf(&b, "%s %-5s %s", r.Time.Format("2006-01-02 15:04:05.000"), strings.ToLower(r.Level.String()), r.Message)
	}
	b.WriteString(h.attrs)
	text := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "text" { // several lines, under the sentence
			text = a.Value.String()
		} else {
			b.WriteString(formatAttr(a))
		}
		return true
	})
	b.WriteByte('\n')
	for line := range strings.Lines(text) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	_, err := io.WriteString(h.to, b.String())
	return err
}

func formatAttr(a slog.Attr) string {
	v := a.Value.Resolve().String()
	if v == "" || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r == '"' || r == '=' || r == 0x7f || r >= 0x80 && r < 0xa0 }) {
		v = fmt.Sprintf("%q", v)
	}
	return " " + a.Key + "=" + v
}

func priority(l slog.Level) int {
	switch {
	case l >= slog.LevelError:
		return 3
	case l >= slog.LevelWarn:
		return 4
	case l >= slog.LevelInfo:
		return 6
	default:
		return 7
	}
}

func (h *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	for _, a := range attrs {
		n.attrs += formatAttr(a)
	}
	return &n
}

func (h *lines) WithGroup(string) slog.Handler { return h }

// throttle lets a sentence through burst times in a period, and then says how
// often it was left out.
type throttle struct {
	slog.Handler
	state *throttleState
}

type throttleState struct {
	mu   sync.Mutex
	seen map[string]*repeat
}

type repeat struct {
	since time.Time
	count int
}

const (
	burst          = 20
	throttlePeriod = 10 * time.Second
	maxSentences   = 1000 // from here on, those of earlier periods are forgotten
)

func newThrottle(h slog.Handler) throttle {
	return throttle{h, &throttleState{seen: map[string]*repeat{}}}
}

func (t throttle) WithAttrs(attrs []slog.Attr) slog.Handler {
	return throttle{t.Handler.WithAttrs(attrs), t.state}
}

func (t throttle) WithGroup(name string) slog.Handler {
	return throttle{t.Handler.WithGroup(name), t.state}
}

func (t throttle) Handle(ctx context.Context, r slog.Record) error {
	dropped, ok := t.state.admit(r.Message, r.Time)
	if !ok {
		return nil
	}
	if dropped > 0 {
		r = r.Clone()
		r.Add("left_out_before", dropped)
	}
	return t.Handler.Handle(ctx, r)
}

func (s *throttleState) admit(message string, now time.Time) (dropped int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.seen[message]
	if e == nil {
		if len(s.seen) >= maxSentences {
			maps.DeleteFunc(s.seen, func(_ string, e *repeat) bool { return now.Sub(e.since) > throttlePeriod })
		}
		e = &repeat{since: now}
		s.seen[message] = e
	}
	if now.Sub(e.since) > throttlePeriod {
		dropped = max(e.count-burst, 0)
		e.since, e.count = now, 0
	}
	e.count++
	return dropped, e.count <= burst
}

// queue writes beside its callers. What does not fit is dropped and counted.
type queue struct {
	to         io.Writer
	entries    chan []byte
	dropped    atomic.Uint64 // since last said
	lost       atomic.Uint64 // in all
	quit, done chan struct{}
}

func newQueue(to io.Writer) *queue {
	q := &queue{to: to, entries: make(chan []byte, 1024), quit: make(chan struct{}), done: make(chan struct{})}
	go q.run()
	return q
}

func (q *queue) run() {
	defer close(q.done)
	for {
		select {
		case b := <-q.entries:
			q.write(b)
		case <-q.quit:
			for {
				select {
				case b := <-q.entries:
					q.write(b)
				default:
					return
				}
			}
		}
	}
}

func (q *queue) write(b []byte) {
	if _, err := q.to.Write(b); err != nil { // a full disk is no reason to stop
		q.dropped.Add(1)
		q.lost.Add(1)
		return
	}
	if n := q.dropped.Swap(0); n > 0 {
		if _, err := fmt.Fprintf(q.to, "%d lines of the log were lost: it could not be written, or too slowly\n", n); err != nil {
			q.dropped.Add(n) // to be said later
		}
	}
}

func (q *queue) Write(b []byte) (int, error) {
	select {
	case q.entries <- append([]byte(nil), b...):
	default:
		q.dropped.Add(1)
		q.lost.Add(1)
	}
	return len(b), nil
}

// close writes out what is queued, but does not wait long for it.
func (q *queue) close() {
	close(q.quit)
	select {
	case <-q.done:
	case <-time.After(time.Second):
	}
}
