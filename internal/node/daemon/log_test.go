package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogLines(t *testing.T) {
	for format, c := range map[string]struct{ journal, want string }{
		"text": {"", " info  it happened pid=5 name=\"a b\" empty=\"\"\n    one\n    two\n"},
		"auto": {"8:1", "<6>it happened pid=5 name=\"a b\" empty=\"\"\n    one\n    two\n"},
	} {
		t.Run(format, func(t *testing.T) {
			t.Setenv("JOURNAL_STREAM", c.journal)
			var b bytes.Buffer
			log, logs := NewLog(LogConfig{Level: "info", Format: format}, &b)
			log.Debug("not this")
			log.Info("it happened", "pid", 5, "name", "a b", "text", "one\ntwo\n", "empty", "")
			logs.Close()
			if got := b.String(); !strings.HasSuffix(got, c.want) || strings.Contains(got, "not this") {
				t.Errorf("got %q, want %q at the end", got, c.want)
			}
		})
	}
}

// Control characters of a foreign name do not reach the terminal.
func TestLogEscapes(t *testing.T) {
	var b bytes.Buffer
	log, logs := NewLog(LogConfig{Level: "info", Format: "text"}, &b)
	log.With("who", "x\x1b[2J").Info("it happened", "name", "\x1b]0;owned\a\n")
	logs.Close()
	if got := b.String(); strings.ContainsAny(strings.TrimSuffix(got, "\n"), "\x1b\a\n") {
		t.Errorf("got %q", got)
	}
}

func TestLogThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log, logs := NewLog(LogConfig{Level: "info", Format: "text"}, &b)
		for i := range 100 {
			log.Info("again", "n", i)
		}
		log.Info("something else")
		time.Sleep(throttlePeriod + time.Second)
		log.Info("again", "n", 100)
		logs.Close()
		got := b.String()
		if n := strings.Count(got, " again "); n != burst+1 {
			t.Errorf("%d lines, want %d:\n%s", n, burst+1, got)
		}
		if !strings.Contains(got, "something else") || !strings.Contains(got, "left_out_before=80") {
			t.Errorf("log:\n%s", got)
		}
	})
}

// Sentences with a name in them do not add up for as long as ttmond runs.
func TestThrottleForgets(t *testing.T) {
	s := newThrottle(slog.DiscardHandler).state
	now := time.Now()
	for i := range 10 * maxSentences {
		if _, ok := s.admit(fmt.Sprint("sentence ", i), now.Add(time.Duration(i)*time.Second)); !ok {
			t.Fatalf("sentence %d was left out", i)
		}
	}
	if len(s.seen) > maxSentences {
		t.Errorf("%d sentences are remembered, more than %d", len(s.seen), maxSentences)
	}
}

// stuck is a log file that takes nothing until it is told to.
type stuck struct {
	free chan struct{}
	bytes.Buffer
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.free
	return s.Buffer.Write(b)
}

// A log that is written too slowly loses lines, and counts them; no caller waits.
func TestLogNeverWaits(t *testing.T) {
	to := &stuck{free: make(chan struct{})}
	q := newQueue(to)
	for range 3000 {
		if n, err := q.Write([]byte("line\n")); n != 5 || err != nil {
			t.Fatal(n, err)
		}
	}
	close(to.free)
	q.close()
	if got := to.String(); !strings.Contains(got, "lines of the log were lost") || strings.Count(got, "line\n") < 1000 {
		t.Errorf("%d bytes", len(got))
	}
}

// fullDisk is a log file on a disk that is full until it is not.
type fullDisk struct {
	space atomic.Bool
	bytes.Buffer
}

func (d *fullDisk) Write(b []byte) (int, error) {
	if !d.space.Load() {
		return 0, errors.New("no space left on device")
	}
	return d.Buffer.Write(b)
}

// What a full disk does not take is counted, and said once there is room.
func TestLogOnAFullDisk(t *testing.T) {
	to := new(fullDisk)
	log, logs := NewLog(LogConfig{Level: "info", Format: "auto"}, to)
	for n := range 10 {
		log.Info(fmt.Sprintf("lost line %d", n))
	}
	for end := time.Now().Add(time.Minute); logs.Lost() < 10; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited a minute for ten lost lines")
		}
	}
	to.space.Store(true)
	log.Info("there is room again")
	logs.Close()
	got := to.String()
	if !strings.Contains(got, "there is room again") || !strings.Contains(got, "10 lines of the log were lost") || strings.Contains(got, "lost line") {
		t.Errorf("the log is %q", got)
	}
	if n := logs.Lost(); n != 10 {
		t.Errorf("%d lines lost, want 10", n)
	}
}

func TestPriorities(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelDebug: 7, slog.LevelInfo: 6, slog.LevelWarn: 4, slog.LevelError: 3} {
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			if got := priority(level); got != want {
				t.Errorf("%d, want %d", got, want)
			}
		})
	}
}
