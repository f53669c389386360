package control

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/driver"
	"github.com/ttmon/ttmon/internal/lab/sim/workload"
)

func newHost(t testing.TB, boards string) *Host {
	t.Helper()
	specs, err := chip.ParseBoards(boards)
	if err != nil {
		t.Fatal(err)
	}
	d := driver.New(driver.Options{Boards: specs, Frozen: true})
	t.Cleanup(d.Close)
	return &Host{Driver: d, Workloads: &workload.Manager{Devices: d}}
}

func TestEveryVerbIsDescribed(t *testing.T) {
	seen := make(map[string]bool)
	for _, v := range Verbs() {
		if v.Name == "" || v.Short == "" || (v.device == nil) == (v.host == nil) || seen[v.Name] {
			t.Errorf("verb %+v", v.Name)
		}
		seen[v.Name] = true
	}
}

// TestStates sees each fault in list, which scripts wait for.
func TestStates(t *testing.T) {
	h := newHost(t, "n150,p150a")
	state := func() string { return h.Driver.Devices()[0].State() }
	for _, tt := range []struct{ cmd, want string }{
		{"hang 0", "hung"},
		{"block 0", "blocked"},
		{"dead 0", "dead"},
		{"alive 0", "blocked"},
		{"release 0", "hung"},
		{"unhang 0", "ok"},
		{"reset 0 block=1h", "resetting"},
		{"unplug 0", "unplugged"},
		{"plug 0000:41:00.0", "ok"},
		{"unbind 0", "unbound"},
		{"bind 0000:41:00.0", "ok"},
		{"rebind 0", "ok"},
		{"driver none", "unbound"},
	} {
		if _, err := h.Do(strings.Fields(tt.cmd)); err != nil {
			t.Fatalf("%s: %v", tt.cmd, err)
		}
		if got := state(); got != tt.want {
			t.Errorf("after %s: %s, want %s", tt.cmd, got, tt.want)
		}
	}
}

func TestAllDevices(t *testing.T) {
	h := newHost(t, "3xn150")
	if _, err := h.Do([]string{"load", "all", "0.5"}); err != nil {
		t.Fatal(err)
	}
	for _, d := range h.Driver.Devices() {
		if d.Chip().Load() != 0.5 {
			t.Errorf("%s has load %v", d.BDF(), d.Chip().Load())
		}
	}
}

func FuzzDo(f *testing.F) {
	for _, v := range Verbs() {
		if v.Name != "run" {
			f.Add(v.Name + " 0 1 x=2 for=1ms")
		}
	}
	f.Add("set 0 tt_aiclk '")
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "run" {
			return // it starts processes
		}
		h := newHost(t, "n150")
		h.Do(words)
	})
}
