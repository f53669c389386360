package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/lab/clidocs"
)

func commandTree() *cobra.Command {
	return newRoot(newApp(os.Stdout, os.Stderr, func(string) string { return "" }), "")
}

// TestExitCodesOfTheTask: the page for CI has the codes of ttmon run.
func TestExitCodesOfTheTask(t *testing.T) {
	page, err := os.ReadFile("../../docs/tasks/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d if memory leaked, %d if a limit was passed, %d if that is not known", exitLeak, exitMax, exitOpen)
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/tasks/ci.md does not say %q", want)
	}
}

// Every command can be learned from its own help.
func TestEveryCommandHasHelp(t *testing.T) {
	clidocs.Walk(commandTree(), func(cmd *cobra.Command) {
		name := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short help %q", name, cmd.Short)
		}
		if cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s: no long help or no example", name)
		}
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if len([]rune(line)) > 100 {
				t.Errorf("%s: a line of help is too long for a terminal: %s", name, line)
			}
		}
		for line := range strings.Lines(cmd.Example) {
			if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "ttmon" {
				t.Errorf("%s: an example that does not begin with ttmon: %s", name, line)
			}
		}
		seen := map[string]string{}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s: no help", name, f.Name)
			}
			if kind, _ := pflag.UnquoteUsage(f); !f.Hidden && (kind == f.Value.Type() || slices.Contains([]string{"string", "strings", "int", "uint", "float"}, kind)) {
				t.Errorf("%s --%s: its help calls the value %q; say what it is: `WHAT`", name, f.Name, kind)
			}
			if other := seen[f.Shorthand]; f.Shorthand != "" && other != "" {
				t.Errorf("%s: -%s is both --%s and --%s", name, f.Shorthand, f.Name, other)
			}
			seen[f.Shorthand] = f.Name
		})
		if cmd.Runnable() && cmd.Args == nil {
			t.Errorf("%s takes any argument without a word", name)
		}
	})
}

// helpLines is a screen.
const helpLines = 50

// --help fits a screen and says what to do in the imperative; the long story is in
// ttmon help COMMAND.
func TestHelpFitsAScreen(t *testing.T) {
	clidocs.Walk(commandTree(), func(cmd *cobra.Command) {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			out, err := os.CreateTemp(t.TempDir(), "help")
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			a := newApp(out, out, func(string) string { return "" })
			a.helpOf(cmd, nil)
			text, err := os.ReadFile(out.Name())
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), "\n"); n < 8 || n > helpLines {
				t.Errorf("--help has %d lines, at most %d fit a screen:\n%s", n, helpLines, text)
			}
			if verb, _, _ := strings.Cut(cmd.Short, " "); strings.HasSuffix(verb, "s") {
				t.Errorf("short help %q: in the imperative, %q", cmd.Short, strings.TrimSuffix(verb, "s"))
			}
		})
	})
}

// The help of ttmon names what a newcomer chooses from: a list that is read, not searched.
func TestHelpIsShort(t *testing.T) {
	listed := 0
	for _, c := range commands() {
		if c.list != unlisted {
			listed++
		}
	}
	if listed > 18 {
		t.Errorf("ttmon --help lists %d commands, at most 18", listed)
	}
}

// docs/ has a page and a manual page per command, made from the tree.
func TestDocs(t *testing.T) {
	clidocs.Pages(t, commandTree(), "../../docs/commands", "ttmon-sim", "ttmond", "ttmon-server")
	clidocs.Manual{Sections: sections}.Check(t, commandTree(), "../../docs/man", "ttmon-sim", "ttmond", "ttmon-server")
}
