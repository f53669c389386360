package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestCollectTimeout: a file with the former name of the timeout still works, and
// the log says so; the new name takes precedence.
func TestCollectTimeout(t *testing.T) {
	const usual = 700 * time.Millisecond
	for _, c := range []struct {
		name, file string
		want       time.Duration
		logged     bool
		err        string
	}{
		{name: "no file", want: usual},
		{name: "new name", file: `timeout = "2s"`, want: 2 * time.Second},
		{name: "former name", file: `patience = "3s"`, want: 3 * time.Second, logged: true},
		{name: "both", file: "timeout = \"2s\"\npatience = \"3s\"", want: 2 * time.Second, logged: true},
		{name: "new name, too short", file: `timeout = "1ms"`, err: "collect.timeout: 1ms"},
		{name: "former name, too long", file: `patience = "1h"`, err: "collect.patience: 1h0m0s"},
		{name: "interval", file: `interval = "1ms"`, err: "collect.interval: 1ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := NewCollect(usual)
			if err := parse([]byte(c.file), &got); err != nil {
				t.Fatal(err)
			}
			err := got.Check()
			if c.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), c.err) {
					t.Errorf("%v, want %s …", err, c.err)
				}
				return
			}
			var log bytes.Buffer
			got.ReportFormer(slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil || got.Timeout.Duration != c.want || got.Former != nil || strings.Contains(log.String(), "collect.timeout") != c.logged {
				t.Errorf("%v, %+v, log %q", err, got, &log)
			}
		})
	}
}
