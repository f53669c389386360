package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/field/metric"
)

func newCompletion(*app) *cobra.Command {
	alias := ""
	cmd := &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the shell completion script for commands, devices and fields",
		Long: `Prints a script for bash, zsh or fish that completes commands, flags, the devices
of this host and the fields of queries. make install puts it where shells find it.
With --alias it is for one of the other names of ttmon, such as tt-smi.`,
		Example: `  ttmon completion bash > ~/.local/share/bash-completion/completions/ttmon
  ttmon completion zsh > "${fpath[1]}/_ttmon"
  ttmon completion fish > ~/.config/fish/completions/ttmon.fish
  ttmon completion bash --alias tt-smi > ~/.local/share/bash-completion/completions/tt-smi`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usage("missing shell: one of %s", strings.Join(cmd.ValidArgs, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			if alias != "" {
				if !slices.Contains(completed(), alias) {
					return exit.Usage("--alias=%s: one of %s", alias, strings.Join(completed(), ", "))
				}
				root.Use = alias // the script calls the program by that name
			}
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return exit.Usage("unknown shell %q: one of %s", args[0], strings.Join(cmd.ValidArgs, ", "))
		},
	}
	cmd.Flags().StringVar(&alias, "alias", "", "complete ttmon under this other `NAME`: "+strings.Join(completed(), ", "))
	return cmd
}

// registerCompletions offers the values of flags to the shell, in every command that
// has the flag.
func (a *app) registerCompletions(cmd *cobra.Command) {
	devices := func() []string { return metric.Names(metric.Devices()) }
	apps := func() []string { return metric.Names(metric.Apps()) }
	for flag, values := range map[string]func() []string{
		"query-device": devices, "query-gpu": devices, "query-apps": apps, "query-compute-apps": apps,
		"format":  func() []string { return []string{"csv", "noheader", "nounits"} },
		"display": func() []string { return strings.Split(sectionNames(), ", ") },
		"id":      a.deviceNames, "devices": a.deviceNames, "device": a.deviceNames,
		"color": func() []string { return []string{"auto", "always", "never"} },
	} {
		if cmd.LocalFlags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, completeList(values))
		}
	}
	for _, c := range cmd.Commands() {
		a.registerCompletions(c)
	}
}

// completeList completes the last item of a list that is separated by commas.
func completeList(values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1] // what is already in the list
		var out []string
		for _, v := range values() {
			if strings.HasPrefix(v, typed[len(before):]) {
				out = append(out, before+v)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// deviceNames lists what -i understands, for completion.
func (a *app) deviceNames() []string {
	where := a.where
	where.Warn = nil // a warning would end up in the line that the user types
	h, err := host.Open(where)
	if err != nil {
		return nil
	}
	defer h.Close()
	s, err := h.Next(context.Background())
	if err != nil {
		return nil
	}
	var list []string
	for i := range s.Devices {
		d := &s.Devices[i]
		list = append(list, strconv.Itoa(d.Index)+"\t"+d.BusID, d.BusID)
	}
	return list
}
