package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/shm"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/words"
	"github.com/ttmon/ttmon/internal/wire"
)

// stale is the command ttmon stale with its flags.
type stale struct {
	*app
	remove, yes, json bool
}

func newStale(a *app) *cobra.Command {
	s := &stale{app: a}
	cmd := &cobra.Command{
		Use:   "stale [REGION…]",
		Short: "Lists what dead processes left in the memory accounting, and removes it",
		Long: `Lists the bytes that processes which died without closing their devices left
in tt-metal's accounting regions (/dev/shm/tt_device_*_memory). The memory itself
is free again; only the books were never closed. ttmon counts none of it as used,
other tools may. REGION narrows it to some, named by path or chip id.

With --remove the regions are removed: only such as no live process uses, after
they were shown, and on a terminal after a question. The next program that opens
the chip makes a new one.

An ordinary user may not look into other users' regions. Where ttmond runs it is
asked for them; where not, ttmon says what it could not look into.

Exit codes: 0 ok, also if nothing is stale; 2 bad argument, or nobody to ask; 4 no
permission, to remove one or to look into any.`,
		Example: `  ttmon stale                           what is there
  ttmon stale --remove                  remove all that nobody uses, after a question
  ttmon stale --remove --yes 9956278468 remove that chip's, without one
  ttmon stale --json | jq '.regions[].ghosts[].dram_bytes'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return s.run(args) },
	}
	f := cmd.Flags()
	f.BoolVar(&s.remove, "remove", false, "remove the regions that no live process uses")
	f.BoolVarP(&s.yes, "yes", "y", false, "with --remove: do not ask")
	f.BoolVar(&s.json, "json", false, "JSON in the ttmon.stale/1 contract")
	return cmd
}

func (s *stale) run(names []string) error {
	switch {
	case s.yes && !s.remove:
		return usage("--yes answers the question that --remove asks: use both")
	case s.json && s.remove && !s.yes:
		return usage("--remove asks first, which it cannot do with --json: add --yes")
	}
	h, err := s.openHost()
	if err != nil {
		return err
	}
	defer h.Close()
	c := collect.New(h.root, collect.Options{Patience: h.patience})
	defer c.Close()
	snap := c.Collect(context.Background())
	r := shm.NewReader(shm.Options{Root: h.root, FullScan: time.Nanosecond})
	defer r.Close()
	sweep := r.Read(users(snap))
	if sweep.Err != nil && !errors.Is(sweep.Err, fs.ErrNotExist) {
		return exitWith(exitInternal, "looking for accounting regions: %w", sweep.Err)
	}
	list := findings(snap, sweep)
	told, asked, err := askStale(h)
	if err != nil {
		return err
	}
	if asked {
		list = merge(list, told)
	}
	if list, err = named(list, names); err != nil {
		return err
	}
	blind := !asked && someUnseen(snap)
	if s.json {
		return s.printJSON(r, list, snap, blind)
	}
	return s.print(r, list, snap, blind)
}

// askStale asks a ttmond, where there is one, what is stale: it may look into
// other users' regions and containers. Root sees as much without.
func askStale(h *host) (told []model.Leftover, asked bool, err error) {
	if os.Geteuid() == 0 && !h.must {
		return nil, false, nil
	}
	answer, err := h.stale(context.Background())
	if err != nil && h.must {
		return nil, false, exitWith(exitInternal, "%w", err)
	}
	if answer == nil || err != nil {
		return nil, false, nil
	}
	return answer.Regions, true, nil
}

// someUnseen tells whether there are programs on the devices that may account
// where we may not look.
func someUnseen(s *model.Snapshot) bool {
	hides := func(list []model.Doubt) bool {
		return slices.ContainsFunc(list, func(d model.Doubt) bool {
			return d.Kind == model.ProcessDenied || d.Kind == model.ProcessUnreadable || d.Kind == model.UsersHidden ||
				d.Kind == model.UsersUnknown || d.Kind == model.RegionUnreachable || d.Kind == model.ShmUnreadable
		})
	}
	for i := range s.Devices {
		if hides(s.Devices[i].Memory.Doubts) || hides(s.Devices[i].Doubts) {
			return true
		}
	}
	for i := range s.Processes {
		for k := range s.Processes[i].Devices {
			if hides(s.Processes[i].Devices[k].Doubts) {
				return true
			}
		}
	}
	return false
}

// print shows what there is, and removes it if that is wanted. blind: there
// are processes that could not be looked into.
func (s *stale) print(r *shm.Reader, list []find, snap *model.Snapshot, blind bool) error {
	o, err := s.textOptions(s.stdout)
	if err != nil {
		return err
	}
	n := count(list, removable)
	mine := count(list, func(f *find) bool { return removable(f) && f.region != nil })
	var buf []byte
	// Nothing is said to be stale only where everything was looked at: a region
	// that is denied, or whose processes cannot be seen, is in the list.
	switch {
	case len(list) == 0 && blind:
		buf = append(buf, "nothing stale where you may look; other users' processes on the devices may account elsewhere: root and ttmond see all\n"...)
	case len(list) == 0:
		buf = append(buf, "nothing stale: no dead process left anything in the memory accounting\n"...)
	default:
		buf = text.AppendStale(buf, leftovers(list), snap.Time, o)
	}
	switch {
	case mine > 0 && !s.remove:
		buf = append(buf, " ttmon stale --remove removes what nobody uses: "+regions(mine)+"\n"...)
	case n > 0 && !s.remove:
		buf = append(buf, " ttmon stale --remove, as root or the owner, removes what nobody uses: "+regions(n)+"\n"...)
	}
	if snap.Simulated {
		buf = append(buf, " simulated host: its processes and their memory are made up by ttmon-sim\n"...)
	}
	if err := s.output("").write(buf); err != nil {
		return err
	}
	if s.remove && n > 0 {
		if ok, err := s.confirm(n); !ok {
			return err
		}
		s.removeAll(r, list)
		if err := s.report(list); err != nil {
			return err
		}
	}
	return outcome(list, blind)
}

// printJSON is print for scripts.
func (s *stale) printJSON(r *shm.Reader, list []find, snap *model.Snapshot, blind bool) error {
	if s.remove {
		s.removeAll(r, list)
	}
	_, _, terminal := size(s.stdout)
	out := wire.AppendStale(nil, &wire.Stale{Time: snap.Time, Simulated: snap.Simulated, Regions: leftovers(list)}, terminal)
	if err := s.output("").write(append(out, '\n')); err != nil {
		return err
	}
	return outcome(list, blind)
}

// confirm asks, where there is somebody to ask.
func (s *stale) confirm(n int) (bool, error) {
	if s.yes {
		return true, nil
	}
	_, _, out := size(s.stdout)
	_, _, in := size(os.Stdin)
	if !in || !out {
		return false, usage("--remove asks before it removes, and there is no terminal to ask on: add --yes")
	}
	fmt.Fprintf(s.stdout, " remove %s? [y/N] ", regions(n))
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // no answer is no
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return false, s.output("").write([]byte(" nothing was removed\n"))
}

// removeAll removes the regions that can be, and notes what came of it.
func (s *stale) removeAll(r *shm.Reader, list []find) {
	for i := range list {
		f := &list[i]
		if !removable(f) {
			continue
		}
		if f.region == nil {
			f.Failure = fmt.Sprintf("removing %s: only uid %d and root may", f.Region, f.Owner)
			f.Denied = true
			continue
		}
		if err := r.Remove(f.region); err != nil {
			f.Failure = err.Error()
			if errors.Is(err, fs.ErrPermission) {
				f.Denied = true
			}
			continue
		}
		f.Removed = true
	}
}

// report says what was removed and what was not.
func (s *stale) report(list []find) error {
	for i := range list {
		f := &list[i]
		if f.Failure != "" {
			fmt.Fprintf(s.stderr, "ttmon: %s\n", words.Escape(f.Failure))
		}
		if f.Removed {
			if err := s.output("").write([]byte(" removed " + words.Escape(f.Region) + "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

// outcome is the exit code: regions that others own are no failure of a list,
// unless there was nothing else.
func outcome(list []find, blind bool) error {
	failed := count(list, func(f *find) bool { return f.Failure != "" })
	denied := count(list, func(f *find) bool { return f.Denied })
	switch {
	case failed > 0 && denied == 0:
		return &exitError{code: exitInternal}
	case failed > 0, denied > 0 && denied == len(list), blind && len(list) == 0:
		return &exitError{code: exitDenied}
	}
	return nil
}

func removable(f *find) bool { return f.Blocked == nil && !f.Denied && !f.Removed && len(f.Ghosts) > 0 }

func count(list []find, is func(*find) bool) (n int) {
	for i := range list {
		if is(&list[i]) {
			n++
		}
	}
	return n
}

func leftovers(list []find) []model.Leftover {
	out := make([]model.Leftover, len(list))
	for i := range list {
		out[i] = list[i].Leftover
	}
	return out
}

func regions(n int) string {
	if n == 1 {
		return "1 region"
	}
	return strconv.Itoa(n) + " regions"
}
