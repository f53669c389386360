package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNormalize(t *testing.T) {
	for _, c := range []struct {
		in       string
		official bool
		want     string
	}{
		{"smi", false, "smi"},
		{"smi -lms 500", false, "smi --loop-ms 500"},
		{"smi -lms=500", false, "smi --loop-ms=500"},
		{"smi -ls", false, "smi --list"},
		{"smi -l 5 -L", false, "smi --loop=5 -L"},
		{"smi -l=5", false, "smi --loop=5"},
		{"smi -l -L", false, "smi --loop=5 -L"},
		{"smi -l", true, "smi --local"},
		{"smi -l 2", true, "smi --loop=2"},
		{"smi -r 500", false, "smi -r 500"},
		{"smi -r", false, "smi -r"},
		{"smi -r 0,1", false, "smi --reset"},
		{"smi -r 500", true, "smi --reset"},
		{"smi -r 0 1 -s", true, "smi --reset -s"},
		{"smi --reset 0 1", false, "smi --reset"},
		{"smi -f - -s", false, "smi --filename=- -s"},
		{"smi -s -f", false, "smi -s --filename="},
		{"smi -f a.json", false, "smi --filename=a.json"},
		{"smi -glx_reset", true, "smi --glx_reset"},
		{"smi dmon -l -r x", false, "smi dmon -l -r x"},
		{"smi -- -ls", false, "smi -- -ls"},
		{"--root x smi -ls", false, "--root x smi --list"},
		{"dmon -ls", false, "dmon -ls"},
		{"", false, ""},
	} {
		got := strings.Join(normalize(strings.Fields(c.in), c.official), " ")
		if got != c.want {
			t.Errorf("normalize(%q, %v) = %q, want %q", c.in, c.official, got, c.want)
		}
	}
}

// Whatever comes, nothing is lost but the targets of a reset, and the
// arguments themselves are left alone.
func FuzzNormalize(f *testing.F) {
	f.Add("smi -l 5 -r 0 -f", true)
	f.Add("smi -lms=1 dmon -ls", false)
	f.Fuzz(func(t *testing.T, line string, official bool) {
		args := strings.Fields(line)
		before := strings.Join(args, " ")
		out := normalize(args, official)
		if diff := cmp.Diff(before, strings.Join(args, " ")); diff != "" {
			t.Fatalf("it changed its argument: %s", diff)
		}
		if len(out) > len(args) {
			t.Fatalf("%q grew into %q", args, out)
		}
	})
}
