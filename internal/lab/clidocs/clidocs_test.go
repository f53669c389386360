package clidocs

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func tree() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{
		Use: "tool", Short: "Does things", Run: run,
		Long:    "Does things to files.\n\n  .code stays\n  as it is\n\n.Prose continues.",
		Example: "  tool --all \\\n    now",
	}
	root.Flags().BoolP("all", "a", false, "everything | nothing")
	root.PersistentFlags().String("root", "/", "the `DIR` to look below")
	hidden := &cobra.Command{Use: "secret", Short: "Not for users", Hidden: true, Run: run}
	large := &cobra.Command{Use: "go PLACE", Short: "Goes", Long: "Goes.", Example: "  tool go home", Run: run}
	small := &cobra.Command{Use: "stop", Short: "stop going", Long: "Stop going.\n\nAt once.", Run: run, DisableFlagsInUseLine: true}
	root.AddCommand(hidden, large, small)
	return root
}

func TestMarkdown(t *testing.T) {
	got := render(tree(), ".md", markdown)
	want := map[string]string{
		"tool.md": `# tool

Does things.

§§§
tool [flags]
§§§

Does things to files.

§§§
.code stays
as it is
§§§

.Prose continues.

## Examples

§§§
tool --all \
  now
§§§

## Flags

| Flag | Meaning |
|---|---|
| §-a§, §--all§ | everything \| nothing |
| §--root DIR§ | the DIR to look below (default /) |

## Commands

- [tool go](tool-go.md): Goes

### tool stop

Stop going.

At once.
`,
		"tool-go.md": `# tool go

Goes.

§§§
tool go PLACE
§§§

## Examples

§§§
tool go home
§§§

## Global flags

| Flag | Meaning |
|---|---|
| §--root DIR§ | the DIR to look below (default /) |
`,
	}
	text := map[string]string{}
	for name, page := range got {
		text[name] = strings.ReplaceAll(string(page), "`", "§")
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func TestMan(t *testing.T) {
	got := render(tree(), ".1", Manual{}.page)
	if len(got) != 2 {
		t.Fatalf("%d manual pages, want 2", len(got))
	}
	want := `.TH TOOL 1 "" "ttmon" "User Commands"
.SH NAME
tool \- does things
.SH SYNOPSIS
.B tool [flags]
.SH DESCRIPTION
Does things to files.
.PP
.nf
.RS
\&.code stays
as it is
.RE
.fi
.PP
\&.Prose continues.
.SH OPTIONS
.TP
\fB\-a\fR, \fB\-\-all\fR
everything | nothing
.TP
\fB\-\-root\fR \fIDIR\fR
the DIR to look below (default /)
.SH EXAMPLES
.nf
tool \-\-all \e
  now
.fi
.SH COMMANDS
.SS tool stop
Stop going.
.PP
At once.
.SH SEE ALSO
.BR tool\-go (1)
`
	if diff := cmp.Diff(want, string(got["tool.1"])); diff != "" {
		t.Errorf("tool.1 (-want +got):\n%s", diff)
	}
}

// TestManIsRead: the formatter that users have takes the page without a word.
func TestManIsRead(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed")
	}
	cmd := exec.Command(groff, "-man", "-Tutf8", "-ww")
	cmd.Stdin = strings.NewReader(string(render(tree(), ".1", Manual{}.page)["tool.1"]))
	var warnings strings.Builder
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil || warnings.Len() > 0 || !strings.Contains(string(out), ".code stays") {
		t.Errorf("groff: %v %s\n%s", err, warnings.String(), out)
	}
}
