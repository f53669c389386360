package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/clidocs"
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
		{"run ttmon smi -ls", false, "run ttmon smi -ls"},
		{"record -o x ttmon smi -f", false, "record -o x ttmon smi -f"},
		{"record -- ttmon smi -r 0 1", false, "record -- ttmon smi -r 0 1"},
		{"", false, ""},
	} {
		t.Run(fmt.Sprintf("%s, official %v", c.in, c.official), func(t *testing.T) {
			got := strings.Join(normalize(strings.Fields(c.in), c.official), " ")
			if got != c.want {
				t.Errorf("normalize(%q, %v) = %q, want %q", c.in, c.official, got, c.want)
			}
		})
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

// FuzzCommandLine gives the parser anything: it takes it, or says in one line
// what is wrong and ends with the code for that. The commands do not run.
func FuzzCommandLine(f *testing.F) {
	for _, s := range []string{
		"smi -l 5 -i 0,1", "smi --query-gpu=index --format=csv", "smi -lms", "smi -r", "smi -r 0 1 2", "smi -ls", "-L smi", "smi -glx_reset",
		"top -d", "mem -d 0 -d 1", "dmon -s pt -o DT", "smi --jsno", "smi -qx", "--", "smi --", "smi dmon --help", "version extra", "stale a b --yes=maybe",
		"smi --loop=abc", "smi -f", "smi -f -", "help smi", "completion bash", "smi --\x1b[2J", "smi -é",
	} {
		f.Add(s, false)
		f.Add(s, true)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string, official bool) {
		args := strings.Fields(line)
		if len(args) > 0 && strings.HasPrefix(args[0], "__complete") {
			return // reads the host
		}
		a := newApp(null, null, func(string) string { return "" })
		a.ttSMI = official
		root := newRoot(a, "")
		clidocs.Walk(root, func(cmd *cobra.Command) {
			if cmd.RunE != nil {
				cmd.RunE = func(*cobra.Command, []string) error { return nil }
			}
		})
		root.SetArgs(normalize(args, official))
		root.SetOut(null)
		root.SetErr(null)
		err := root.Execute()
		if err == nil {
			return
		}
		if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != exit.BadArgument {
			t.Errorf("%q: %T %v, want one that ends with %d", args, err, err, exit.BadArgument)
		}
		if text := words.Escape(err.Error()); text == "" || strings.ContainsAny(text, "\n\x1b") {
			t.Errorf("%q: the error is %q", args, text)
		}
	})
}
