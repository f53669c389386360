package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/stale"
	"github.com/ttmon/ttmon/internal/field/words"
)

// staleCmd is the command ttmon stale with its flags.
type staleCmd struct {
	*app
	remove, yes, json bool
}

// addRemoval adds what may be said of what is stale: ttmon stale has it, and ttmon mem
// --stale.
func (s *staleCmd) addRemoval(f *pflag.FlagSet, with string) {
	f.BoolVar(&s.remove, "remove", false, with+"remove the regions that no live process uses")
	f.BoolVarP(&s.yes, "yes", "y", false, "with --remove: do not ask for confirmation")
}

// newStale is another name of ttmon mem --stale.
func newStale(a *app) *cobra.Command {
	s := &staleCmd{app: a}
	cmd := &cobra.Command{
		Use:   "stale [REGION…]",
		Short: "List, and remove, what dead processes left in tt-metal's memory accounting",
		Long: `The same as ttmon mem --stale, which ttmon help mem describes.

Exit codes: 0 ok, also if nothing is stale; 2 bad argument, or no ttmond runs; 4 no
permission to remove one or to read any.`,
		Example: `  ttmon stale --remove --yes 9956278468 remove one chip's without asking`,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(_ *cobra.Command, args []string) error { return s.run(args) },
	}
	f := cmd.Flags()
	s.addRemoval(f, "")
	f.BoolVar(&s.json, "json", false, "print JSON (schema ttmon.stale/1)")
	return cmd
}

func (s *staleCmd) run(names []string) error {
	switch {
	case s.yes && !s.remove:
		return exit.Usage("--yes needs --remove")
	case s.json && s.remove && !s.yes:
		return exit.Usage("--remove with --json cannot ask for confirmation: add --yes")
	}
	h, err := host.Open(s.where)
	if err != nil {
		return err
	}
	defer h.Close()
	list, err := stale.Scan(h, names)
	if err != nil {
		return err
	}
	defer list.Close()
	show := s.print
	if s.json {
		show = s.printJSON
	}
	if err := show(list); err != nil {
		return err
	}
	return list.Outcome()
}

// print shows what there is, and removes it if that is wanted.
func (s *staleCmd) print(list *stale.List) error {
	o, err := s.TextOptions(s.Stdout)
	if err != nil {
		return err
	}
	n, mine := list.Removable()
	buf := list.Append(nil, o)
	switch {
	case mine > 0 && !s.remove:
		buf = append(buf, " ttmon mem --stale --remove removes what is unused: "+words.Count(mine, "region")+"\n"...)
	case n > 0 && !s.remove:
		buf = append(buf, " ttmon mem --stale --remove, as root or the owner, removes what is unused: "+words.Count(n, "region")+"\n"...)
	}
	if list.Snapshot.Simulated {
		buf = append(buf, " "+words.Simulated+"\n"...)
	}
	if err := s.Output("").Write(buf); err != nil {
		return err
	}
	if !s.remove || n == 0 {
		return nil
	}
	if ok, err := s.confirm(n); !ok {
		return err
	}
	list.Remove()
	return s.report(list.Regions)
}

// printJSON is print for scripts.
func (s *staleCmd) printJSON(list *stale.List) error {
	if s.remove {
		list.Remove()
	}
	_, _, terminal := console.Size(s.Stdout)
	return s.Output("").Write(list.AppendJSON(nil, terminal))
}

// confirm asks the user at the terminal, if there is one.
func (s *staleCmd) confirm(n int) (bool, error) {
	if s.yes {
		return true, nil
	}
	_, _, out := console.Size(s.Stdout)
	_, _, in := console.Size(os.Stdin)
	if !in || !out {
		return false, exit.Usage("--remove needs a terminal to ask for confirmation: add --yes")
	}
	fmt.Fprintf(s.Stdout, " remove %s? [y/N] ", words.Count(n, "region"))
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // no answer is no
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return false, s.Output("").Write([]byte(" nothing was removed\n"))
}

// report says what was removed and what was not.
func (s *staleCmd) report(list []stale.Region) error {
	for i := range list {
		f := &list[i]
		if f.Failure != "" {
			fmt.Fprintf(s.Stderr, "ttmon: %s\n", words.Escape(f.Failure))
		}
		if f.Removed {
			if err := s.Output("").Write([]byte(" removed " + words.Escape(f.Region) + "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}
