package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/console"
)

// helpWidth is the widest a line of help becomes, whatever the terminal.
const helpWidth = 100

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Says how a command is used",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return noArguments(about, rest)
			}
			return about.Help()
		},
	}
}

// helpOf prints a command's help, wrapped to the terminal.
func (a *app) helpOf(cmd *cobra.Command, _ []string) {
	fmt.Fprintf(a.Stdout, "%s\n\n", strings.TrimSpace(cmd.Long))
	_ = a.usageOf(cmd, a.Stdout)
}

func (a *app) usageOf(cmd *cobra.Command, w io.Writer) error {
	width := helpWidth
	if columns, _, ok := console.Size(a.Stdout); ok && columns > 40 {
		width = min(width, columns)
	}
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
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(w, "\nCommands:")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(w, "  %-*s  %s\n", cmd.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	if f := cmd.LocalFlags(); f.HasAvailableFlags() {
		f.SortFlags = false
		fmt.Fprintf(w, "\nFlags:\n%s", f.FlagUsagesWrapped(width))
	}
	if f := cmd.InheritedFlags(); f.HasAvailableFlags() {
		fmt.Fprintf(w, "\nFlags of all commands:\n%s", f.FlagUsagesWrapped(width))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n%s COMMAND --help says more about a command.\n", cmd.CommandPath())
	}
	return nil
}
