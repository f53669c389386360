package sim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/ttmon/ttmon/internal/sim/driver"
	"github.com/ttmon/ttmon/internal/sim/nsroot"
	"github.com/ttmon/ttmon/internal/sim/tree"
	"golang.org/x/sys/unix"
)

// server is the process behind a Host.
type server struct {
	cfg     config
	driver  *driver.Driver
	mounted *tree.Mounted
	control *listener
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
	r := ready{Control: controlPath(s.cfg.Dir)}
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
	opts, err := s.cfg.driverOptions()
	if err != nil {
		return err
	}
	if opts.Host, err = surroundings(); err != nil {
		return err
	}
	s.driver = driver.New(opts)
	if err := showThrough(s.driver.Root); err != nil {
		return err
	}
	if err := s.place(); err != nil {
		return err
	}
	s.control, err = listen(controlPath(s.cfg.Dir), s)
	return err
}

// place serves the tree and puts it where a real host has it.
func (s *server) place() error {
	fuseDir, stage := filepath.Join(s.cfg.Dir, "fuse"), filepath.Join(s.cfg.Dir, "stage")
	for _, dir := range []string{fuseDir, stage} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	var err error
	if s.mounted, err = tree.Mount(s.driver.Root, fuseDir); err != nil {
		return err
	}
	return s.plan(fuseDir).Assemble(stage)
}

// plan says which parts of the tree go where.
func (s *server) plan(fuseDir string) nsroot.Plan {
	p := nsroot.Plan{
		Tops:   []string{"/sys", "/dev", "/proc/driver"},
		Insert: make(map[string]string), Cover: make(map[string]string),
		Write: map[string]string{"/sys/ttmon-sim": s.marker()},
	}
	for _, path := range []string{
		"/sys/class/tenstorrent", "/sys/class/hwmon", "/sys/bus/pci/devices", "/sys/bus/pci/drivers/tenstorrent",
		"/sys/module/tenstorrent", "/sys/dev/char", "/dev/tenstorrent", "/proc/driver/tenstorrent",
	} {
		p.Insert[path] = fuseDir + path
	}
	for _, root := range s.driver.Root.Dir("sys").Dir("devices").Names() {
		p.Insert["/sys/devices/"+root] = fuseDir + "/sys/devices/" + root
	}
	for _, name := range s.driver.Root.Dir("proc").Names() {
		if name != "driver" {
			p.Cover["/proc/"+name] = fuseDir + "/proc/" + name
		}
	}
	if !s.cfg.ShareShm {
		shm := filepath.Join(s.cfg.Dir, "shm")
		if os.Mkdir(shm, 0o777) == nil && unix.Mount("ttmon-sim", shm, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777") == nil {
			p.Insert["/dev/shm"] = shm
		}
	}
	return p
}

// marker is the file by which ttmon knows that the host is simulated.
func (s *server) marker() string {
	b, _ := json.Marshal(struct {
		Version int    `json:"version"`
		Boards  string `json:"boards"`
		Control string `json:"control"`
	}{1, s.cfg.Boards, controlPath(s.cfg.Dir)})
	return string(b) + "\n"
}

// shut ends everything in the host, and removes its directory. The namespace
// goes with the last process in it, which is this one.
func (s *server) shut() {
	if s.control != nil {
		s.control.close()
	}
	if s.driver != nil {
		s.driver.Close()
		killInside(s.cfg.Outer)
	}
	for _, name := range []string{"stage", "fuse", "shm"} {
		unix.Unmount(filepath.Join(s.cfg.Dir, name), unix.MNT_DETACH)
	}
	os.RemoveAll(s.cfg.Dir)
}
