package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestWhyNothing: where there is no failure a script still reads JSON.
func TestWhyNothing(t *testing.T) {
	path := daemonAt(t, map[string]func(http.ResponseWriter){
		"GET /v1/failures": func(w http.ResponseWriter) { fmt.Fprint(w, `{"schema":"ttmon.failures/1","failures":null}`) },
	})
	for want, args := range map[string][]string{
		"null\n": nil,
		`{"schema":"ttmon.failures/1","failures":[]}` + "\n": {"--list"},
	} {
		t.Run(want, func(t *testing.T) {
			if code, out, errs := runDaemonCommand(t, append([]string{"--daemon", path, "why", "--json"}, args...)...); code != 0 || out != want {
				t.Errorf("why --json %v: exit %d, %q, want %q: %s", args, code, out, want, errs)
			}
		})
	}
}

// Where nothing happened a person reads that, and a script reads nothing.
func TestNoEvents(t *testing.T) {
	path := daemonAt(t, map[string]func(http.ResponseWriter){
		"GET /v1/events": func(w http.ResponseWriter) { fmt.Fprint(w, `{"events":[]}`) },
	})
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"none yet", nil, "no events yet\n"},
		{"of a kind", []string{"--kind", "alert"}, "no matching events\n"},
		{"of a level", []string{"--level", "critical"}, "no matching events\n"},
		{"of a time", []string{"--since", "1h"}, "no matching events\n"},
		{"for a script", []string{"--json"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := runDaemonCommand(t, append([]string{"--daemon", path, "events"}, c.args...)...)
			if code != 0 || out != c.want || errs != "" {
				t.Errorf("exit %d, %q, want %q: %s", code, out, c.want, errs)
			}
		})
	}
}

// TestEventsInOrder: what was found late stands where it happened.
func TestEventsInOrder(t *testing.T) {
	path := daemonAt(t, map[string]func(http.ResponseWriter){
		"GET /v1/events": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"events":[{"seq":7,"time":"2026-11-19T20:46:22Z","kind":"started","text":"second"},{"seq":8,"time":"2026-11-19T20:46:21Z","kind":"no_room","text":"first"}]}`)
		},
	})
	code, out, errs := runDaemonCommand(t, "--daemon", path, "events")
	if code != 0 || strings.Index(out, "first") > strings.Index(out, "second") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}
