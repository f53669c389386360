package shm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/devshm"
)

// Leftover is a region in which dead processes left something, or may have.
type Leftover struct {
	Region *Region
	// Blocked is why the region cannot be removed; nil if it can.
	Blocked *model.Doubt
}

// Leftovers lists the regions with stale slots, with slots whose owners are not
// visible, and those that we may not read.
func (s *Sweep) Leftovers() (list []Leftover) {
	for _, r := range s.Regions {
		if len(r.StaleSlots) == 0 && len(r.Unknown) == 0 && r.Why != model.Denied {
			continue
		}
		list = append(list, Leftover{Region: r, Blocked: r.whyBlocked()})
	}
	return list
}

func (r *Region) whyBlocked() *model.Doubt {
	switch {
	case len(r.Mapped) > 0:
		return &model.Doubt{Kind: model.RegionInUse, PIDs: r.Mapped, Region: r.Path}
	case r.Deleted:
		return &model.Doubt{Kind: model.RegionNameless, Region: r.Path}
	case len(r.Unknown) > 0:
		return &model.Doubt{Kind: model.OwnersUnseen, Region: r.Path}
	}
	return nil
}

// InUseError means that a region cannot be removed because live processes map
// it. They would continue accounting in a file that no monitor finds.
type InUseError struct {
	Path string
	PIDs []int
}

func (e *InUseError) Error() string {
	words := make([]string, len(e.PIDs))
	for i, pid := range e.PIDs {
		words[i] = strconv.Itoa(pid)
	}
	return fmt.Sprintf("%s is in use by process %s", e.Path, strings.Join(words, ", "))
}

// Remove removes a region's file, with the stale slots in it; the next process that
// opens the chip makes a new one. It is the only function of this package that
// writes, and does so only if the file is the one that was read and no live
// process maps it. All processes are checked for that before and after the file
// is renamed; if one attached in between, the name is restored.
func (r *Reader) Remove(reg *Region) error {
	d := r.dirWith(reg)
	if d == nil {
		return fmt.Errorf("removing %s: %w", reg.Path, fs.ErrNotExist)
	}
	name := RegionName(reg.ID)
	if err := checkRemovable(d, name, reg); err != nil {
		return err
	}
	if err := r.checkUnmapped(reg); err != nil {
		return err
	}
	aside := fmt.Sprintf(".ttmon_removing_%d_%s", os.Getpid(), name)
	if err := unix.Renameat2(d.FD, name, d.FD, aside, unix.RENAME_NOREPLACE); err != nil {
		return fmt.Errorf("removing %s: %w", reg.Path, err)
	}
	err := checkRemovable(d, aside, reg)
	if err == nil {
		err = r.checkUnmapped(reg)
	}
	if err != nil {
		back := unix.Renameat2(d.FD, aside, d.FD, name, unix.RENAME_NOREPLACE)
		return errors.Join(err, back)
	}
	if err := unix.Unlinkat(d.FD, aside, 0); err != nil {
		return fmt.Errorf("removing %s: %w", reg.Path, err)
	}
	return nil
}

// dirWith returns the directory that a region was found in.
func (r *Reader) dirWith(of *Region) *devshm.Dir {
	if reg := r.regions[of.file]; reg != nil && reg.id == of.ID && !of.Deleted && !reg.deleted {
		return reg.dir
	}
	return nil
}

// checkRemovable makes sure that a name is still the region's, and that we may
// remove it.
func checkRemovable(d *devshm.Dir, name string, reg *Region) error {
	st, err := d.Stat(name)
	if err != nil {
		return fmt.Errorf("removing %s: %w", reg.Path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || devshm.IDOf(&st) != reg.file {
		return fmt.Errorf("removing %s: the file was replaced", reg.Path)
	}
	if me := os.Geteuid(); me != 0 && int(st.Uid) != me {
		return fmt.Errorf("removing %s: it belongs to uid %d, so only that user and root may: %w", reg.Path, st.Uid, fs.ErrPermission)
	}
	return nil
}

// checkUnmapped returns nil if it is certain that no live process maps a
// region. An ordinary user cannot read the mappings of others' processes: for
// these it suffices that none has the pid and name of a slot.
func (r *Reader) checkUnmapped(reg *Region) error {
	if !r.complete {
		return fmt.Errorf("removing %s: some processes of the host are not visible", reg.Path)
	}
	all := r.withTimeout(5 * time.Second) // no screen waits for this
	defer all.Close()
	pids, err := all.processes.PIDs()
	if err != nil {
		return err
	}
	inUse := &InUseError{Path: reg.Path}
	for _, pid := range pids {
		p, err := all.open(pid)
		if err != nil {
			continue // it has exited
		}
		all.readMaps(p)
		_, mapped := p.maps.find(reg.file)
		all.processes.Discard(p.Process)
		switch {
		case mapped, denied(p.mapsErr) && reg.claimedBy(p):
			inUse.PIDs = append(inUse.PIDs, pid)
		case errors.Is(p.mapsErr, unix.ESRCH), errors.Is(p.mapsErr, fs.ErrNotExist): // it has exited
		case p.mapsErr != nil && !denied(p.mapsErr):
			return fmt.Errorf("removing %s: cannot check whether process %d maps it: %w", reg.Path, pid, p.mapsErr)
		}
	}
	if len(inUse.PIDs) > 0 {
		return inUse
	}
	return nil
}

// claimedBy reports whether a process has the pid and name of a stale slot.
func (reg *Region) claimedBy(p *process) bool {
	return slices.ContainsFunc(slices.Concat(reg.StaleSlots, reg.Unknown), func(g StaleSlot) bool {
		return g.PID == p.InnerPID && g.Name == p.Name
	})
}
