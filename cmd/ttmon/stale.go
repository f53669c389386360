package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/shm"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/words"
)

func newStale(a *app) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "stale [REGION…]",
		Short: "Lists what dead processes left in the memory accounting, and removes it",
		Long: `Lists the bytes that processes which died without closing their devices left
in tt-metal's accounting regions (/dev/shm/tt_device_*_memory). The memory itself
is free again; only the books were never closed. ttmon counts none of it as used,
other tools may.

With --remove the regions are removed, all of them or those named by path or
chip id: only such as no live process uses, and after saying so. The next program
that opens the chip makes a new one.`,
		Example: `  ttmon stale                           what is there
  ttmon stale --remove                  remove all that nobody uses
  ttmon stale --remove 9956278468       remove that chip's
  ttmon smi --json | jq .ghosts         for scripts`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return a.stale(args, remove) },
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the regions that no live process uses")
	return cmd
}

func (a *app) stale(names []string, remove bool) error {
	root, err := a.host()
	if err != nil {
		return err
	}
	o, err := a.textOptions(a.stdout)
	if err != nil {
		return err
	}
	c := collect.New(root, collect.Options{})
	defer c.Close()
	s := c.Collect(context.Background())
	r := shm.NewReader(shm.Options{Root: root, FullScan: time.Nanosecond})
	defer r.Close()
	sweep := r.Read(users(s))
	if sweep.Err != nil {
		return exitWith(exitInternal, "looking for accounting regions: %w", sweep.Err)
	}
	found := sweep.Leftovers()
	if found, err = named(found, names); err != nil {
		return err
	}
	if len(found) == 0 {
		return a.output("").write([]byte("nothing stale: no dead process left anything in the memory accounting\n"))
	}
	var list []text.Leftover
	removable := 0
	for _, l := range found {
		list = append(list, leftover(s, l))
		if l.Blocked == "" {
			removable++
		}
	}
	buf := text.AppendStale(nil, list, s.Time, o)
	if !remove && removable > 0 {
		buf = append(buf, " ttmon stale --remove removes what nobody uses: "+regions(removable)+"\n"...)
	}
	if err := a.output("").write(buf); err != nil || !remove {
		return err
	}
	return a.remove(r, found)
}

func regions(n int) string {
	if n == 1 {
		return "1 region"
	}
	return strconv.Itoa(n) + " regions"
}

// remove removes the regions that can be removed, and says so one by one.
func (a *app) remove(r *shm.Reader, list []shm.Leftover) error {
	var failed error
	for _, l := range list {
		if l.Blocked != "" {
			continue
		}
		if err := r.Remove(l.Region); err != nil {
			failed = errors.Join(failed, err)
			fmt.Fprintf(a.stderr, "ttmon: %s\n", words.Escape(err.Error()))
			continue
		}
		if err := a.output("").write([]byte(" removed " + words.Escape(l.Region.Path) + "\n")); err != nil {
			return err
		}
	}
	switch {
	case failed == nil:
		return nil
	case errors.Is(failed, fs.ErrPermission):
		return &exitError{code: exitDenied}
	default:
		return &exitError{code: exitInternal}
	}
}

// users are the processes whose containers may have regions of their own.
func users(s *model.Snapshot) []shm.User {
	var list []shm.User
	for i := range s.Processes {
		if p := &s.Processes[i]; p.State == model.Running {
			list = append(list, shm.User{PID: p.PID, StartTicks: p.StartTicks})
		}
	}
	return list
}

// named keeps the regions that were named: by path, file name or chip id.
func named(list []shm.Leftover, names []string) ([]shm.Leftover, error) {
	if len(names) == 0 {
		return list, nil
	}
	fits := func(l shm.Leftover, name string) bool {
		return name == l.Region.Path || name == path.Base(l.Region.Path) || name == strconv.FormatUint(l.Region.ID, 10)
	}
	var known []string
	for _, l := range list {
		known = append(known, l.Region.Path, strconv.FormatUint(l.Region.ID, 10))
	}
	for _, name := range names {
		if slices.ContainsFunc(list, func(l shm.Leftover) bool { return fits(l, name) }) {
			continue
		}
		if n := words.Nearest(name, known); n != "" {
			return nil, usage("nothing stale in %q: did you mean %s?", name, n)
		}
		return nil, usage("nothing stale in %q: ttmon stale lists what there is", name)
	}
	return slices.DeleteFunc(list, func(l shm.Leftover) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return fits(l, name) })
	}), nil
}

// leftover is a region as the view shows it.
func leftover(s *model.Snapshot, l shm.Leftover) text.Leftover {
	out := text.Leftover{Region: l.Region.Path, Device: model.NoDevice, Blocked: l.Blocked}
	for i := range s.Ghosts {
		if s.Ghosts[i].ChipID == l.Region.ID && s.Ghosts[i].Device != model.NoDevice {
			out.Device = s.Ghosts[i].Device
		}
	}
	for _, g := range l.Region.Ghosts {
		out.Ghosts = append(out.Ghosts, model.Ghost{PID: g.PID, Name: g.Name, Bytes: g.Bytes, Updated: g.Updated})
	}
	return out
}
