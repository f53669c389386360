package daemon

import (
	"strings"
	"testing"
	"time"
)

func TestCollectCheck(t *testing.T) {
	const usual = 700 * time.Millisecond
	for _, c := range []struct {
		name, file string
		want       time.Duration
		err        string
	}{
		{name: "no file", want: usual},
		{name: "timeout", file: `timeout = "2s"`, want: 2 * time.Second},
		{name: "too short", file: `timeout = "1ms"`, err: "collect.timeout: 1ms"},
		{name: "too long", file: `timeout = "1h"`, err: "collect.timeout: 1h0m0s"},
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
			if err != nil || got.Timeout.Duration != c.want {
				t.Errorf("%v, %+v", err, got)
			}
		})
	}
}
