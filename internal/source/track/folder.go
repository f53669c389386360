package track

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/proc"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// folder is a folder with ledgers, open for one sweep. Its files are reached
// through the descriptor: what a process sees under the path may be replaced at
// any time, by something that does not answer.
type folder struct {
	inode
	path string
	fd   int // O_PATH
}

func newFolder(fd int, path string) (*folder, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return &folder{inode: inode{st.Dev, st.Ino}, path: path, fd: fd}, nil
}

// openFolder opens a folder that only root or we ourselves can have mounted.
func openFolder(path string) (*folder, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return newFolder(fd, path)
}

// openFolderOf opens /dev/shm as a process sees it. It may block on what is
// mounted there.
func openFolderOf(root hostfs.Root, pid int) (*folder, error) {
	dir, err := root.OpenDir("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	path := root.Path(proc.SharedMemoryPath(pid))
	fd, err := proc.OpenSharedMemory(dir)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return newFolder(fd, path)
}

// ledgers lists the names of the ledgers in a folder.
func (d *folder) ledgers() (list []string, err error) {
	names, err := hostfs.NamesAt(d.fd)
	if err != nil {
		return nil, &fs.PathError{Op: "readdirent", Path: d.path, Err: err}
	}
	for _, name := range names {
		if strings.HasPrefix(name, ledgerfile.Prefix) {
			list = append(list, name)
		}
	}
	return list, nil
}

// stat looks at a file of the folder, a link itself and not its target.
func (d *folder) stat(name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func (d *folder) close() {
	if d != nil {
		unix.Close(d.fd)
	}
}

// lead is where a process was found to keep its ledgers.
type lead struct {
	to inode
	at time.Time
}

// leadAge is for how long a process is believed to have the folder that it was
// found to have. It changes when the process mounts another one.
const leadAge = 15 * time.Second

// find opens what is new in the folders, each folder once. A folder that is not
// there, or not for us, has nothing: its owner's ttmon reads it. A process that
// was found to have a folder which has just been visited is not asked for it:
// that may block, and takes a goroutine of its own.
func (r *Reader) find(s *Sweep, users []model.ProcessID) {
	path := r.opts.Dir
	if path == "" {
		path = r.opts.Root.Path("/dev/shm")
	}
	host, err := openFolder(path)
	switch {
	case err == nil:
		r.scanFolder(s, host)
	case !errors.Is(err, fs.ErrNotExist):
		s.fail(path, -1, fmt.Errorf("looking for ledgers: %w", err))
	}
	leads := make(map[model.ProcessID]lead, len(users))
	defer func() { r.leads = leads }()
	for _, id := range users {
		if l := r.leads[id]; r.folders[l.to] != nil && r.now.Sub(l.at) < leadAge {
			leads[id] = l
			continue
		}
		d, err := r.folderOf(id)
		switch {
		case err == nil:
			leads[id] = lead{d.inode, r.now}
			r.scanFolder(s, d)
		case errors.Is(err, hostfs.ErrTimeout):
			s.fail(r.opts.Root.Path(proc.SharedMemoryPath(id.PID)), -1, fmt.Errorf("looking for ledgers: %w", err))
		}
	}
}

// folderOf opens the folder of a process, which may not answer.
func (r *Reader) folderOf(id model.ProcessID) (*folder, error) {
	if r.opts.Guard == nil {
		return openFolderOf(r.opts.Root, id.PID)
	}
	var d *folder
	var openErr error
	root := r.opts.Root
	returned, err := r.opts.Guard.Run(id, func() { d, openErr = openFolderOf(root, id.PID) })
	if err != nil {
		go func() { // it may still be opened, after we have given up on it
			<-returned
			d.close()
		}()
		return nil, err
	}
	return d, openErr
}

// scanFolder opens what is new in a folder, unless it was scanned in this sweep: most
// processes have the same one. It is closed with the sweep.
func (r *Reader) scanFolder(s *Sweep, d *folder) {
	if r.folders[d.inode] != nil {
		d.close()
		return
	}
	r.folders[d.inode] = d
	names, err := d.ledgers()
	if err != nil {
		s.fail(d.path, -1, fmt.Errorf("looking for ledgers: %w", err))
		return
	}
	for _, name := range names {
		r.openLedger(s, d, name)
	}
}

// openLedger opens a ledger of a folder if it is new, and notes that it is still there.
func (r *Reader) openLedger(s *Sweep, d *folder, name string) {
	path := d.path + "/" + name
	st, err := d.stat(name)
	if err != nil {
		return // it has just been removed
	}
	f := r.files[inode{st.Dev, st.Ino}]
	if f == nil {
		if !r.mayOpen(int(st.Uid)) {
			s.fail(path, int(st.Uid), errTooMany)
			return
		}
		if f, err = open(d, name); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				s.fail(path, int(st.Uid), err)
			}
			return
		}
		r.add(f)
	}
	f.seen, f.path, f.in, f.name = r.seq, path, d, name
}
