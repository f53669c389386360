package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
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
			log, logs := newLog(logConfig{Level: "info", Format: format}, &b)
			log.Debug("not this")
			log.Info("it happened", "pid", 5, "name", "a b", "text", "one\ntwo\n", "empty", "")
			logs.close()
			if got := b.String(); !strings.HasSuffix(got, c.want) || strings.Contains(got, "not this") {
				t.Errorf("got %q, want %q at the end", got, c.want)
			}
		})
	}
}

// Control characters of a foreign name do not reach the terminal.
func TestLogEscapes(t *testing.T) {
	var b bytes.Buffer
	log, logs := newLog(logConfig{Level: "info", Format: "text"}, &b)
	log.With("who", "x\x1b[2J").Info("it happened", "name", "\x1b]0;owned\a\n")
	logs.close()
	if got := b.String(); strings.ContainsAny(strings.TrimSuffix(got, "\n"), "\x1b\a\n") {
		t.Errorf("got %q", got)
	}
}

func TestLogThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log, logs := newLog(logConfig{Level: "info", Format: "text"}, &b)
		for i := range 100 {
			log.Info("again", "n", i)
		}
		log.Info("something else")
		time.Sleep(throttlePeriod + time.Second)
		log.Info("again", "n", 100)
		logs.close()
		got := b.String()
		if n := strings.Count(got, " again "); n != burst+1 {
			t.Errorf("%d lines, want %d:\n%s", n, burst+1, got)
		}
		if !strings.Contains(got, "something else") || !strings.Contains(got, "left_out_before=80") {
			t.Errorf("log:\n%s", got)
		}
	})
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

// A log that is written too slowly loses lines, and says so; nobody waits.
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

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestLogOnAFullDisk(t *testing.T) {
	log, logs := newLog(logConfig{Level: "info", Format: "json"}, broken{})
	for range 10 {
		log.Info("it happened")
	}
	logs.close()
}

func TestPriorities(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelDebug: 7, slog.LevelInfo: 6, slog.LevelWarn: 4, slog.LevelError: 3} {
		if got := priority(level); got != want {
			t.Errorf("%v: %d, want %d", level, got, want)
		}
	}
}
