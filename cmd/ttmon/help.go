package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// helpWidth is the widest a line of help becomes, whatever the terminal.
const helpWidth = 100

func (a *app) newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the full help of a command",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return noArguments(about, rest)
			}
			return a.fullHelp(about)
		},
	}
}

// helpOf prints the help of --help, which fits a screen: what a command does, how
// it is used, its flags. ttmon help COMMAND and the manual have the rest.
func (a *app) helpOf(cmd *cobra.Command, _ []string) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s.\n\n", cmd.Short)
	_ = a.usageOf(cmd, &out)
	_ = a.printHelp(out.Bytes())
}

// printHelp prints help whatever the other arguments say, also a wrong --color.
func (a *app) printHelp(b []byte) error {
	if a.UseASCII() {
		b = cells.AppendASCII(nil, string(b))
	}
	return a.Output("").Write(b)
}

// fullHelp prints the whole description of a command, then its usage.
func (a *app) fullHelp(cmd *cobra.Command) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", strings.TrimSpace(cmd.Long))
	a.usage(cmd, &out, true)
	if f := cmd.InheritedFlags(); f.HasAvailableFlags() {
		fmt.Fprintf(&out, "\nGlobal flags:\n%s", flagUsages(f, a.helpColumns()))
	}
	return a.printHelp(out.Bytes())
}

// helpColumns is the width of help: that of the terminal, up to helpWidth.
func (a *app) helpColumns() int {
	if columns, _, ok := console.Size(a.Stdout); ok && columns > 40 {
		return min(helpWidth, columns)
	}
	return helpWidth
}

// flagUsages lists flags. An optional value is printed as --flag[=VALUE], as manuals
// do, where pflag prints --flag VALUE[="default"]; the text names the default.
func flagUsages(f *pflag.FlagSet, columns int) string {
	// Compiled here: a start without help does not pay for it.
	optional := regexp.MustCompile(`(--[a-z-]+) (\w+)(\[="[^"]*"\])`)
	return optional.ReplaceAllStringFunc(f.FlagUsagesWrapped(columns), func(flag string) string {
		m := optional.FindStringSubmatch(flag)
		return m[1] + "[=" + m[2] + "]" + strings.Repeat(" ", len(m[3])-2)
	})
}

// usageOf prints the usage of a command, and where to read more.
func (a *app) usageOf(cmd *cobra.Command, w io.Writer) error {
	a.usage(cmd, w, false)
	switch {
	case !cmd.HasParent():
		fmt.Fprintln(w, "\nttmon COMMAND --help lists the flags of a command, ttmon help COMMAND describes it in full, and\nttmon help lists all commands.")
	case cmd.HasAvailableSubCommands():
		fmt.Fprintf(w, "\n%s COMMAND --help lists the flags of a command.\n", cmd.CommandPath())
	default:
		fmt.Fprintf(w, "\nFull description: ttmon help %s. Global flags: ttmon --help.\n", strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "))
	}
	return nil
}

// usage prints how a command is used; all: also the commands that --help leaves out.
func (a *app) usage(cmd *cobra.Command, w io.Writer, all bool) {
	fmt.Fprintln(w, "Usage:")
	if cmd.Runnable() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND\n", cmd.CommandPath())
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	switch {
	case !cmd.HasParent():
		listCommands(cmd, w, all)
	case cmd.HasAvailableSubCommands():
		fmt.Fprintln(w, "\nCommands:")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-*s  %s\n", cmd.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	if f := cmd.LocalFlags(); f.HasAvailableFlags() {
		f.SortFlags = false
		fmt.Fprintf(w, "\nFlags:\n%s", flagUsages(f, a.helpColumns()))
	}
}

// listCommands prints the commands of ttmon in the parts of the help.
func listCommands(root *cobra.Command, w io.Writer, all bool) {
	part := list("")
	for _, c := range commands() {
		cmd, _, err := root.Find([]string{c.name})
		if err != nil || cmd.Hidden || c.list == unlisted && !all {
			continue
		}
		if c.list != part {
			part = c.list
			fmt.Fprintf(w, "\n%s:\n", part)
		}
		fmt.Fprintf(w, "  %-*s  %s\n", root.NamePadding(), c.name, cmd.Short)
	}
}
