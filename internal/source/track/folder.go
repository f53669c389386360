package track

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/devshm"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// find opens what is new in the folders. A folder that is not there, or not for us, has
// nothing: its owner's ttmon reads it.
func (r *Reader) find(s *Sweep, users []model.ProcessID) {
	r.dirs.StartSweep(r.now)
	for _, id := range users {
		if err := r.dirs.Reach(id, func(open func(hostfs.Dir)) (<-chan struct{}, error) { return r.openIn(id, open) }); errors.Is(err, hostfs.ErrTimeout) {
			s.fail(r.opts.Root.Path(devshm.PathOf(id.PID)), -1, fmt.Errorf("looking for ledgers: %w", err))
		}
	}
	all := r.dirs.All()
	if err := r.dirs.Err; err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.fail(r.opts.Dir, -1, fmt.Errorf("looking for ledgers: %w", err))
	}
	for _, d := range all {
		names, err := d.Names(r.now, math.MaxInt, func(name string) bool { return strings.HasPrefix(name, ledgerfile.Prefix) })
		if err != nil {
			s.fail(r.pathOf(d), -1, fmt.Errorf("looking for ledgers: %w", err))
		}
		for _, name := range names {
			r.openLedger(s, d, name)
		}
	}
}

// openIn opens something of a process, for as long as the guard allows.
func (r *Reader) openIn(id model.ProcessID, open func(hostfs.Dir)) (returned <-chan struct{}, err error) {
	root := r.opts.Root
	f := func() {
		if dir, err := root.OpenDir("/proc/" + strconv.Itoa(id.PID)); err == nil {
			defer dir.Close()
			open(dir)
		}
	}
	if r.opts.Guard == nil {
		f()
		return nil, nil
	}
	return r.opts.Guard.Run(id, f)
}

// pathOf is a folder as we reach it.
func (r *Reader) pathOf(d *devshm.Dir) string {
	if d == r.dirs.Host && r.opts.Dir != "" {
		return d.Path
	}
	return r.opts.Root.Path(d.Path)
}

// openLedger opens a ledger of a folder if it is new, and notes that it is still there.
func (r *Reader) openLedger(s *Sweep, d *devshm.Dir, name string) {
	path := r.pathOf(d) + "/" + name
	st, err := d.Stat(name)
	if err != nil {
		return // it has just been removed
	}
	f := r.files[devshm.IDOf(&st)]
	if f == nil {
		if !r.mayOpen(int(st.Uid)) {
			s.fail(path, int(st.Uid), errTooMany)
			return
		}
		if f, err = open(d, path, name); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				s.fail(path, int(st.Uid), err)
			}
			return
		}
		r.add(f)
	}
	f.seen, f.path, f.in, f.name = r.seq, path, d, name
}
