package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/nearest"
)

// strict makes every command answer a wrong flag, argument or subcommand with
// one line that names it and what was probably meant.
func strict(root *cobra.Command) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.SetFlagErrorFunc(flagError)
		if cmd.Args == nil {
			cmd.Args = noArguments
		}
		cmd.Flags().SortFlags = false
		cmd.Flags().SetNormalizeFunc(hyphens)
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
}

// hyphens lets --snapshot_no_tty be written with hyphens too, as the rest of
// our flags are, and the other way round.
func hyphens(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	what := "unexpected argument"
	if nearest.Word(args[0], known) != "" || cmd == cmd.Root() {
		what = "unknown command"
	}
	return usage("%s %q%s", what, args[0], meant(cmd, args[0], known))
}

// flagError says in our words what pflag found wrong.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, "--"+f.Name)
		}
	})
	if name, ok := strings.CutPrefix(text, "unknown flag: "); ok {
		return usage("unknown flag %s%s", name, meant(cmd, name, flags))
	}
	if rest, ok := strings.CutPrefix(text, "unknown shorthand flag: "); ok {
		_, in, _ := strings.Cut(rest, " in ")
		if len(in) > 2 { // "-json"
			return usage("unknown flag %s%s", in, meant(cmd, "-"+in, flags))
		}
		return usage("unknown flag %s: see %s --help", in, cmd.CommandPath())
	}
	if rest, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		if _, in, ok := strings.Cut(rest, " in "); ok {
			rest = in
		}
		return usage("flag %s needs a value: see %s --help", rest, cmd.CommandPath())
	}
	return &exitError{exitUsage, err}
}

// meant is the end of an error: ": did you mean X?", or where to look.
func meant(cmd *cobra.Command, word string, known []string) string {
	slices.Sort(known)
	if n := nearest.Word(word, known); n != "" {
		return ": did you mean " + n + "?"
	}
	return ": see " + cmd.CommandPath() + " --help"
}
