package main

import (
	"slices"
	"strings"
	"testing"
)

// TestOtherNames: what people type under the name of another program, as a command line
// of ttmon.
func TestOtherNames(t *testing.T) {
	for typed, want := range map[string]string{
		"tt-smi -ls":                        "smi -ls",
		"tt-nvtop -d 5":                     "top -d 5",
		"tt_smi":                            "smi --names",
		"tt_smi -w":                         "smi --names --watch",
		"tt_smi -w -r 500":                  "smi --names --refresh=500",
		"tt_smi --watch --refresh=250 -i 1": "smi --names --refresh=250 -i 1",
		"tt_smi -r 500":                     "smi --names",
		"tt_smi -d":                         "smi --query",
		"tt_smi -c":                         "stale",
		"tt_smi --shm-only":                 "mem --once",
		"tt_smi --memory-only -w -r 500":    "mem --refresh=500",
		"tt_smi --json":                     "smi --names --json",
		"tt_smi_umd":                        "smi --names",
		"tt_smi_umd -w":                     "top --delay=5",
		"tt_smi_umd -w -r 250 --sysfs":      "top --delay=2.5",
		"tt_smi_umd -w -r 10":               "top --delay=1",
		"tt_smi_umd -w -r soon":             "top --delay=soon",
		"/usr/bin/allocation_monitor_client -a -r 5": "mem -a -r 5",
		"allocation_monitor_client -d 0 -d 1":        "mem -d 0 -d 1",
		"memory_monitor_test -r 500":                 "mem --refresh=500",
		"memory_monitor_test -t -r 500":              "mem --direct --refresh=500",
		"tt_smi __complete --re":                     "__complete smi --re",
	} {
		t.Run(typed, func(t *testing.T) {
			argv := strings.Fields(typed)
			other := nameOf(argv[0])
			if other == nil {
				t.Fatal("unknown name")
			}
			if got := other.commandLine(argv[1:]); !slices.Equal(got, strings.Fields(want)) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	if other := nameOf("/opt/ttmon"); other != nil {
		t.Errorf("ttmon is identified as %v", other)
	}
}
