// Package clidocs writes the documentation of a command line program from its
// tree of commands: pages in Markdown and manual pages. Tests of the programs
// call it, write the files of docs/ with -update (make update), and fail when those have
// fallen behind. It is outside the data flow, and no program links it.
package clidocs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/lab/golden"
)

// Pages compares the files of dir, which belong to the programs of the tree,
// with what the tree says, or rewrites them. Files of other programs in the
// same directory are named by the prefixes in others.
func Pages(t *testing.T, root *cobra.Command, dir string, others ...string) {
	t.Helper()
	compare(t, dir, render(root, ".md", markdown), root.Name(), others)
}

// Check is Pages for manual pages.
func (m Manual) Check(t *testing.T, root *cobra.Command, dir string, others ...string) {
	t.Helper()
	compare(t, dir, render(root, "."+m.number(), m.page), root.Name(), others)
}

func render(root *cobra.Command, suffix string, page func(*cobra.Command) []byte) map[string][]byte {
	pages := map[string][]byte{}
	Walk(root, func(cmd *cobra.Command) {
		if !isSection(cmd) {
			pages[fileName(cmd)+suffix] = page(cmd)
		}
	})
	return pages
}

func compare(t *testing.T, dir string, pages map[string][]byte, program string, others []string) {
	t.Helper()
	for name, want := range pages {
		golden.Check(t, filepath.Join(dir, name), want)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		foreign := slices.ContainsFunc(others, func(prefix string) bool { return strings.HasPrefix(e.Name(), prefix) })
		if !foreign && strings.HasPrefix(e.Name(), program) && pages[e.Name()] == nil {
			t.Errorf("%s is about no command: remove it", filepath.Join(dir, e.Name()))
		}
	}
}

// Walk visits a command and all below it that users see.
func Walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range available(cmd) {
		Walk(c, visit)
	}
}

func available(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool {
		made := c.Example == "" && (c.Name() == "completion" || c.Name() == "help") // by cobra itself
		return !c.IsAvailableCommand() || made
	})
}

// isSection reports whether a command is so small, without an example and flags
// of its own, that it is a section of its parent's page.
func isSection(cmd *cobra.Command) bool {
	return cmd.HasParent() && cmd.Example == "" && !cmd.HasAvailableLocalFlags() && !cmd.HasAvailableSubCommands()
}

func fileName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// option is a flag as both kinds of pages show it.
type option struct {
	short, long, value, meaning string
}

func options(set *pflag.FlagSet) []option {
	set.SortFlags = false
	var list []option
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, meaning := pflag.UnquoteUsage(f)
		if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && !strings.Contains(meaning, "(default") {
			meaning += " (default " + d + ")"
		}
		list = append(list, option{f.Shorthand, f.Name, value, meaning})
	})
	return list
}

// block is a part of a help text: prose, or lines to be kept as they are.
type block struct {
	lines []string
	code  bool
}

// blocks splits a help text; indented lines are code.
func blocks(s string) []block {
	var list []block
	for line := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
		text, code := strings.CutPrefix(line, "  ")
		if len(list) == 0 || line != "" && list[len(list)-1].code != code {
			list = append(list, block{code: code})
		}
		last := &list[len(list)-1]
		last.lines = append(last.lines, text)
	}
	for i := range list {
		for n := len(list[i].lines); n > 0 && list[i].lines[n-1] == ""; n-- {
			list[i].lines = list[i].lines[:n-1]
		}
	}
	return list
}

// example is the example of a command without its indent.
func example(cmd *cobra.Command) string {
	lines := strings.Split(cmd.Example, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

// sentence makes a sentence of a short help.
func sentence(s string) string {
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
