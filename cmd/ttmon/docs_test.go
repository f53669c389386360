package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const docsDir = "../../docs/commands"

func commandTree() *cobra.Command {
	return newRoot(&app{stdout: os.Stdout, stderr: os.Stderr, getenv: func(string) string { return "" }})
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			walk(c, visit)
		}
	}
}

// Every command can be learned from its own help.
func TestEveryCommandHasHelp(t *testing.T) {
	walk(commandTree(), func(cmd *cobra.Command) {
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

// docs/commands has a page per command, made from the tree.
func TestCommandPages(t *testing.T) {
	pages := map[string][]byte{}
	walk(commandTree(), func(cmd *cobra.Command) {
		pages[strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".md"] = page(cmd)
	})
	if *update {
		if err := os.MkdirAll(docsDir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range pages {
			if err := os.WriteFile(filepath.Join(docsDir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, err := os.ReadDir(docsDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "ttmon-sim") || strings.HasPrefix(e.Name(), "ttmond") { // other programs' pages
			continue
		}
		if pages[e.Name()] == nil {
			t.Errorf("%s is about no command: remove it", e.Name())
		}
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(docsDir, name))
		if err != nil {
			t.Errorf("%v (-update writes it)", err)
			continue
		}
		if diff := cmp.Diff(string(got), string(want)); diff != "" {
			t.Errorf("%s is out of date (-update writes it anew):\n%s", name, diff)
		}
	}
}

func page(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s.\n\n", cmd.CommandPath(), cmd.Short)
	fmt.Fprintf(&b, "```\n%s\n```\n\n", cmd.UseLine())
	fmt.Fprintf(&b, "%s\n\n", escapeMarkdown(cmd.Long))
	fmt.Fprintf(&b, "## Examples\n\n```\n%s\n```\n", dedent(cmd.Example))
	flags(&b, "Flags", cmd.NonInheritedFlags())
	flags(&b, "Flags of all commands", cmd.InheritedFlags())
	var below []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			file := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".md"
			below = append(below, fmt.Sprintf("- [%s](%s): %s\n", c.CommandPath(), file, c.Short))
		}
	}
	if len(below) > 0 {
		slices.Sort(below)
		fmt.Fprintf(&b, "\n## Commands\n\n%s", strings.Join(below, ""))
	}
	return b.Bytes()
}

func flags(b *bytes.Buffer, title string, set *pflag.FlagSet) {
	set.SortFlags = false
	var rows []string
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "`--" + f.Name
		if value != "" {
			name += " " + value
		}
		name += "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		if d := f.DefValue; d != "" && d != "false" && d != "0" {
			usage += " (default " + d + ")"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s |\n", name, strings.ReplaceAll(usage, "|", `\|`)))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n## %s\n\n| Flag | Meaning |\n|---|---|\n%s", title, strings.Join(rows, ""))
	}
}

// escapeMarkdown keeps indented blocks of the help as they are, as code.
func escapeMarkdown(s string) string {
	var out []string
	code := false
	for _, line := range strings.Split(s, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != code {
			out, code = append(out, "```"), indented
		}
		out = append(out, strings.TrimPrefix(line, "  "))
	}
	if code {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

func dedent(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}
