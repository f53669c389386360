package main

import (
	"fmt"
	"net/http"
	"testing"
)

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
