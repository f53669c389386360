package sim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/sim/control"
	"github.com/ttmon/ttmon/internal/lab/sim/nsroot"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
	"golang.org/x/sys/unix"
)

// server is the process behind a Host.
type server struct {
	cfg     config
	host    *control.Host
	mounted *tree.Mounted
	control *listener
	fuseDir string
	edited  []string // files of /proc that are covered
	dump    string   // where UMD's descriptor is left; empty: nowhere

	mu    sync.Mutex
	shown []string // of the optional paths
}

// serve is the life of the host process: read the configuration, put the
// files in place, say so, and stay until the other end of standard input is
// gone.
func serve() error {
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP)
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)

	answer := os.NewFile(3, "answer")
	stdin := bufio.NewReader(os.Stdin)
	line, err := stdin.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	s := &server{}
	if err := json.Unmarshal(line, &s.cfg); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	err = s.open()
	r := ready{Control: s.cfg.control()}
	if err != nil {
		r.Error, r.Missing = err.Error(), missingPrivilege(err)
	}
	json.NewEncoder(answer).Encode(r)
	answer.Close()
	if err == nil {
		gone := make(chan struct{})
		go func() { io.Copy(io.Discard, stdin); close(gone) }()
		select {
		case <-gone:
		case <-terminate:
		}
	}
	s.shut()
	return nil
}

// missingPrivilege names the privilege whose lack err is due to.
func missingPrivilege(err error) string {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) && !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	if f, e := os.OpenFile("/dev/fuse", os.O_RDWR, 0); e != nil {
		return "access to /dev/fuse"
	} else {
		f.Close()
	}
	return "the right to mount (CAP_SYS_ADMIN)"
}

// open makes the host.
func (s *server) open() error {
	inner, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	if inner == s.cfg.Outer {
		return errors.New("BUG: the host's process is not in a namespace of its own")
	}
	if err := nsroot.Private(); err != nil {
		return err
	}
	real, err := surroundings()
	if err != nil {
		return err
	}
	if s.host, err = s.cfg.newHost(real); err != nil {
		return err
	}
	if err := showThrough(s.host.Driver.Root); err != nil {
		return err
	}
	if err := s.procFiles(); err != nil {
		return err
	}
	if err := s.makeCluster(); err != nil {
		return err
	}
	if err := s.mountTree(); err != nil {
		return err
	}
	s.host.Driver.OnChange = func() { s.sync(); s.describe() }
	if err := s.cfg.begin(s.host); err != nil {
		return err
	}
	s.control, err = listen(s.cfg.control(), s.host)
	return err
}

// mountTree serves the tree and puts it where a real host has it.
func (s *server) mountTree() error {
	s.fuseDir = filepath.Join(s.cfg.Dir, "fuse")
	stage := filepath.Join(s.cfg.Dir, "stage")
	for _, dir := range []string{s.fuseDir, stage} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	var err error
	if s.mounted, err = tree.Mount(s.host.Driver.Root, s.fuseDir); err != nil {
		return err
	}
	return s.plan().Assemble(stage)
}

// optional are the paths that are there only while the driver or a device is.
// Where the real host has them they are hidden.
var optional = []string{
	"/sys/class/tenstorrent", "/sys/bus/pci/drivers/tenstorrent", "/sys/module/tenstorrent",
	"/proc/driver/tenstorrent", "/dev/tenstorrent",
}

// plan says which parts of the tree go where.
func (s *server) plan() nsroot.Plan {
	p := nsroot.Plan{
		Tops:   []string{"/sys", "/dev", "/proc/driver"},
		Insert: make(map[string]string), Cover: make(map[string]string),
		Hide:  optional,
		Write: map[string]string{Marker: marker(s.cfg.Boards, s.cfg.control(), s.namespace())},
	}
	for _, path := range optional {
		p.Open = append(p.Open, filepath.Dir(path))
	}
	for _, path := range s.host.Driver.Places() {
		p.Insert[path] = s.fuseDir + path
		if slices.Contains(optional, path) {
			s.shown = append(s.shown, path)
		}
	}
	p.Insert["/dev/kmsg"] = s.fuseDir + "/dev/kmsg"
	for _, path := range s.edited {
		p.Cover[path] = s.fuseDir + path
	}
	if !s.cfg.ShareShm {
		shm := filepath.Join(s.cfg.Dir, "shm")
		if os.Mkdir(shm, 0o777) == nil && unix.Mount("ttmon-sim", shm, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777") == nil {
			p.Insert["/dev/shm"] = shm
		}
	}
	s.showCluster(&p)
	return p
}

// namespace is the pid namespace of the host's processes, unless others may
// account in its /dev/shm.
func (s *server) namespace() uint64 {
	var st unix.Stat_t
	if s.cfg.ShareShm || unix.Stat("/proc/self/ns/pid", &st) != nil {
		return 0
	}
	return st.Ino
}

// sync shows and hides the optional paths as the driver now has them.
func (s *server) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := s.host.Driver.Places()
	for _, path := range optional {
		var err error
		switch wanted, shown := slices.Contains(want, path), slices.Contains(s.shown, path); {
		case wanted && !shown:
			if err = nsroot.Show(s.fuseDir+path, path); err == nil {
				s.shown = append(s.shown, path)
			}
		case !wanted && shown:
			err = nsroot.Remove(path)
			s.shown = slices.DeleteFunc(s.shown, func(p string) bool { return p == path })
		}
		if err != nil {
			slog.Error("simulated host failed", "err", err)
		}
	}
}

// shut ends everything in the host, and removes its directory. The namespace
// goes with the last process in it, which is this one.
func (s *server) shut() {
	if s.control != nil {
		s.control.close()
	}
	if s.host != nil {
		s.host.Driver.Close()
		s.host.Workloads.Close()
		killInside(s.cfg.Outer)
	}
	for _, name := range []string{"stage", "fuse", "shm"} {
		unix.Unmount(filepath.Join(s.cfg.Dir, name), unix.MNT_DETACH)
	}
	s.dropCluster()
	os.RemoveAll(s.cfg.Dir)
}
