package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"testing"
)

// TestEveryKindOfEvent: all kinds that there are can be asked for.
func TestEveryKindOfEvent(t *testing.T) {
	path := daemonAt(t, map[string]func(http.ResponseWriter){
		"GET /v1/events": func(w http.ResponseWriter) { fmt.Fprint(w, `{"events":[]}`) },
	})
	n := 0
	for file, declared := range map[string]string{
		"../../internal/view/event/event.go": `\sKind = "([a-z_]+)"`,
		"../../internal/eventlog/event.go":   `Kind\w+ += "([a-z_]+)"`,
	} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(declared).FindAllSubmatch(source, -1) {
			n++
			t.Run(string(m[1]), func(t *testing.T) {
				if code, _, errs := runDaemonCommand(t, "--daemon", path, "events", "--json", "--kind", string(m[1])); code != 0 {
					t.Errorf("exit %d, %s", code, errs)
				}
			})
		}
	}
	if n < 15 {
		t.Errorf("%d kinds are declared: this test does not see them", n)
	}
}

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
