package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestEveryReason: whatever is missing, in whatever trouble, says why: a word
// for the kind, and a reason behind it. Where the state of the whole device
// says it already, the word is enough.
func TestEveryReason(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		options sim.Options
		happens [][]string
		code    int
	}{
		"all well":     {sim.Options{Boards: "n300,p150a,p300c"}, nil, 0},
		"old driver":   {sim.Options{Boards: "n300,p150a", Driver: "1.34"}, nil, 0},
		"no telemetry": {sim.Options{Boards: "n150,p100a", Firmware: "no-telemetry"}, nil, 0},
		"labels only":  {sim.Options{Boards: "n150,p100a", Firmware: "labels-only"}, nil, 0},
		"users": {sim.Options{Boards: "n150,p150a"}, [][]string{
			{"run", "name=llama,devices=0"},
			{"run", "name=metal,devices=1,kind=metal,dram=1G"},
			{"run", "name=inheritor,devices=0,orphan"},
			{"opener", "1", "stale"},
		}, 0},
		"troubles": {sim.Options{Boards: "n150,p150a,n300,p150a"}, [][]string{
			{"dead", "0"}, {"reset", "1", "block=1ms", "window=forever"}, {"block", "2", "telemetry"}, {"set", "3", "temp1_input", "nonsense"},
		}, exitTrouble},
	} {
		t.Run(name, func(t *testing.T) {
			if c.code != 0 {
				impatient(t)
			}
			h := start(t, c.options)
			for _, args := range c.happens {
				ctl(t, h, args...)
			}
			r := runIn(t, h, "smi", "--json")
			if r.code != c.code {
				t.Errorf("exit code %d, want %d: %s", r.code, c.code, r.err)
			}
			type scope struct {
				Index, PID int
				State      string
				Missing    map[string]string
			}
			var s struct {
				Host    scope
				Devices []struct {
					scope
					Chips []scope
				}
				Processes []scope
			}
			if err := json.Unmarshal([]byte(r.out), &s); err != nil {
				t.Fatal(err)
			}
			check := func(what string, in scope, state string) {
				t.Helper()
				for field, reason := range in.Missing {
					kind, why, _ := strings.Cut(reason, ": ")
					if why == "" && (kind == "absent" || state == "ok" || state == "running") {
						t.Errorf("%s: %s is %q, without a reason", what, field, reason)
					}
				}
			}
			check("the host", s.Host, "ok")
			for _, d := range s.Devices {
				check("a device", d.scope, d.State)
				for _, chip := range d.Chips {
					check("a chip", chip, d.State)
				}
			}
			for _, p := range s.Processes {
				check("a process", p, p.State)
			}
		})
	}
}
