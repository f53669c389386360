// Package stale lists what dead processes left in tt-metal's accounting regions,
// and removes the regions that no live process uses.
package stale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/nearest"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/shm"
	"github.com/ttmon/ttmon/internal/view/text"
)

// Region is an accounting region with something stale in it, or that could not be read.
type Region struct {
	model.Leftover
	region *shm.Region // nil: a ttmond reported it
}

// List is what is stale on a host.
type List struct {
	Regions  []Region
	Snapshot *model.Snapshot
	// Blind: there are processes that could not be inspected.
	Blind  bool
	reader *shm.Reader
}

// Scan lists what is stale: all of it, or the regions that are named by path, file
// name or chip id. Close gives back what removing them needs.
func Scan(h *host.Host, names []string) (*List, error) {
	c := collect.New(h.Root, collect.Options{Timeout: h.Timeout, Thresholds: h.Thresholds()})
	defer c.Close()
	l := &List{Snapshot: c.Collect(context.Background()), reader: shm.NewReader(shm.Options{Root: h.Root, FullScan: time.Nanosecond})}
	if err := l.look(h, names); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *List) look(h *host.Host, names []string) error {
	sweep := l.reader.Read(users(l.Snapshot))
	if sweep.Err != nil && !errors.Is(sweep.Err, fs.ErrNotExist) {
		return exit.With(exit.Internal, "looking for accounting regions: %w", sweep.Err)
	}
	l.Regions = findings(l.Snapshot, sweep)
	told, asked, err := askDaemon(h)
	if err != nil {
		return err
	}
	if asked {
		l.Regions = merge(l.Regions, told)
	}
	l.Blind = !asked && someUnseen(l.Snapshot)
	l.Regions, err = named(l.Regions, names)
	return err
}

// Close closes the regions.
func (l *List) Close() { l.reader.Close() }

// Removable is how many regions no live process uses; mine, how many of them this
// user may remove.
func (l *List) Removable() (n, mine int) {
	return l.count(removable), l.count(func(f *Region) bool { return removable(f) && f.region != nil })
}

// Append prints the list.
func (l *List) Append(dst []byte, o text.Options) []byte {
	// Nothing is said to be stale only where everything was inspected: a region
	// that is denied, or whose processes cannot be seen, is in the list.
	switch {
	case len(l.Regions) == 0 && l.Blind:
		return append(dst, "nothing stale where you may look; other users' processes on the devices may account elsewhere: root and ttmond see all\n"...)
	case len(l.Regions) == 0:
		return append(dst, "nothing stale: no dead process left anything in the memory accounting\n"...)
	default:
		return text.AppendStale(dst, l.leftovers(), l.Snapshot.Time, o)
	}
}

// AppendJSON prints the list as a document (ttmon.stale/1).
func (l *List) AppendJSON(dst []byte, indent bool) []byte {
	dst = wire.AppendStale(dst, &wire.Stale{Time: l.Snapshot.Time, Simulated: l.Snapshot.Simulated, Regions: l.leftovers()}, indent)
	return append(dst, '\n')
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

// findings are the regions with stale slots, those with a process that cannot be
// seen, and those that this user may not read.
func findings(s *model.Snapshot, sweep *shm.Sweep) []Region {
	var list []Region
	for _, l := range sweep.Leftovers() {
		list = append(list, Region{collect.Leftover(s.Devices, l), l.Region})
	}
	return list
}

// merge adds what a ttmond told to what was seen here: it may look where we may
// not. Of a region that both could look into, ours is what can be removed.
func merge(list []Region, told []model.Leftover) []Region {
	list = slices.DeleteFunc(list, func(f Region) bool { // the daemon looked, and found nothing
		return f.Denied && !slices.ContainsFunc(told, func(l model.Leftover) bool { return l.Region == f.Region })
	})
	for _, l := range told {
		i := slices.IndexFunc(list, func(f Region) bool { return f.Region == l.Region })
		switch {
		case i < 0:
			list = append(list, Region{Leftover: l})
		case list[i].Denied:
			list[i] = Region{Leftover: l}
		case len(list[i].Unseen) > 0 && len(l.Unseen) == 0 && !l.Denied:
			list[i].Leftover = l
		}
	}
	slices.SortStableFunc(list, func(a, b Region) int { return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.ChipID, b.ChipID)) })
	return list
}

// named keeps the regions that were named: by path, file name or chip id.
func named(list []Region, names []string) ([]Region, error) {
	if len(names) == 0 {
		return list, nil
	}
	fits := func(f Region, name string) bool {
		return name == f.Region || name == path.Base(f.Region) || name == strconv.FormatUint(f.ChipID, 10)
	}
	var known []string
	for _, f := range list {
		known = append(known, f.Region, strconv.FormatUint(f.ChipID, 10))
	}
	for _, name := range names {
		if slices.ContainsFunc(list, func(f Region) bool { return fits(f, name) }) {
			continue
		}
		if n := nearest.Word(name, known); n != "" {
			return nil, exit.Usage("nothing stale in %q: did you mean %s?", name, n)
		}
		return nil, exit.Usage("nothing stale in %q: see ttmon mem --stale", name)
	}
	return slices.DeleteFunc(list, func(f Region) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return fits(f, name) })
	}), nil
}

// askDaemon asks a ttmond, where there is one, what is stale: it may look into
// other users' regions and containers. Root sees as much without.
func askDaemon(h *host.Host) (told []model.Leftover, asked bool, err error) {
	if os.Geteuid() == 0 && !h.Named {
		return nil, false, nil
	}
	answer, err := h.Stale(context.Background())
	if err != nil && h.Named {
		return nil, false, exit.With(exit.Internal, "%w", err)
	}
	if answer == nil || err != nil {
		return nil, false, nil
	}
	return answer.Regions, true, nil
}

// someUnseen reports whether there are programs on the devices that may account
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

// Remove removes the regions that can be removed, and notes the result.
func (l *List) Remove() {
	for i := range l.Regions {
		f := &l.Regions[i]
		if !removable(f) {
			continue
		}
		if f.region == nil {
			f.Failure = fmt.Sprintf("removing %s: only uid %d and root may", f.Region, f.Owner)
			f.Denied = true
			continue
		}
		if err := l.reader.Remove(f.region); err != nil {
			f.Failure = err.Error()
			if errors.Is(err, fs.ErrPermission) {
				f.Denied = true
			}
			continue
		}
		f.Removed = true
	}
}

// Outcome is the exit code: regions that others own are no failure of a list,
// unless there was nothing else.
func (l *List) Outcome() error {
	failed := l.count(func(f *Region) bool { return f.Failure != "" })
	denied := l.count(func(f *Region) bool { return f.Denied })
	switch {
	case failed > 0 && denied == 0:
		return exit.Silent(exit.Internal)
	case failed > 0, denied > 0 && denied == len(l.Regions), l.Blind && len(l.Regions) == 0:
		return exit.Silent(exit.Denied)
	}
	return nil
}

func removable(f *Region) bool {
	return f.Blocked == nil && !f.Denied && !f.Removed && len(f.StaleSlots) > 0
}

func (l *List) count(is func(*Region) bool) (n int) {
	for i := range l.Regions {
		if is(&l.Regions[i]) {
			n++
		}
	}
	return n
}

func (l *List) leftovers() []model.Leftover {
	out := make([]model.Leftover, len(l.Regions))
	for i := range l.Regions {
		out[i] = l.Regions[i].Leftover
	}
	return out
}
