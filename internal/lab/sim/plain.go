package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/control"
	"github.com/ttmon/ttmon/internal/lab/sim/driver"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// Tree is a simulated host as a plain directory, for programs that take a
// root directory and for machines where nothing else is allowed. Its files
// neither fail nor block, and no process uses its boards.
type Tree struct {
	Dir string

	host  *control.Host
	plain *tree.Plain
	stop  context.CancelFunc
	wait  sync.WaitGroup
}

// refresh is how often a Tree's files are rewritten.
const refresh = 100 * time.Millisecond

// NewTree makes a plain tree in dir, which must be empty, not there yet, or
// made by an earlier NewTree. Its values move until Close; the files stay.
func NewTree(o Options, dir string) (*Tree, error) {
	if err := o.check(); err != nil {
		return nil, &OptionError{err}
	}
	if len(o.Procs) > 0 {
		return nil, &OptionError{errors.New("workloads need a whole simulated host: a plain tree has none")}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := claim(dir); err != nil {
		return nil, err
	}
	t := &Tree{Dir: dir, plain: tree.NewPlain(dir)}
	if t.host, err = o.newHost(driver.Surroundings{Nodes: numaNodes()}); err != nil {
		return nil, err
	}
	t.host.Driver.Settle()
	t.links(o.Boards)
	if err := errors.Join(t.describe(), t.update()); err != nil {
		t.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.wait.Go(func() { t.rewriteLoop(ctx) })
	return t, nil
}

// rewriteLoop rewrites the files until ctx is done.
func (t *Tree) rewriteLoop(ctx context.Context) {
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := t.update(); err != nil {
				slog.Error("simulated tree failed", "err", err)
			}
		}
	}
}

// update brings the files to what is true now.
func (t *Tree) update() error {
	places := t.host.Driver.Places()
	return t.plain.Update(t.host.Driver.Root, func(path string) bool {
		return slices.Contains(optional, path) && !slices.Contains(places, path)
	})
}

// links makes the rest of what a monitor reads below its root lead to the
// real host.
func (t *Tree) links(boards string) {
	root := t.host.Driver.Root
	root.Dir("sys").Add("ttmon-sim", markerFile(boards))
	for _, name := range []string{"cgroups", "cpuinfo", "devices", "filesystems", "loadavg", "meminfo", "self", "stat", "sys", "uptime", "version"} {
		root.Dir("proc").Add(name, &tree.Link{Target: "/proc/" + name})
	}
	root.At("proc/bus/pci").Add("devices", &tree.File{Mode: 0o444, Show: func(tree.Caller) ([]byte, syscall.Errno) {
		return t.host.Driver.PCITable(), 0
	}})
	root.Dir("etc").Add("passwd", &tree.Link{Target: "/etc/passwd"})
	root.At("sys/devices").Add("system", &tree.Link{Target: "/sys/devices/system"})
	root.At("dev/shm")
}

// Close leaves the files as they are.
func (t *Tree) Close() {
	if t.stop != nil {
		t.stop()
	}
	t.wait.Wait()
	t.host.Driver.Close()
	t.plain.Close()
}

// claim makes dir ready for a tree: a directory that is empty, new, or held
// one of ours.
func claim(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(dir, 0o755)
	case err != nil:
		return err
	case len(entries) == 0:
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "sys/ttmon-sim")); err != nil {
		return &OptionError{fmt.Errorf("%s is neither empty nor a simulated tree: ttmon-sim does not touch it", dir)}
	}
	for _, name := range []string{"sys", "proc", "dev", "etc"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("removing the simulated tree that was there: %w", err)
		}
	}
	return nil
}

// marker is the text of the file by which ttmon knows that a host is
// simulated. namespace is the pid namespace that has all processes of the
// host: who sees that one sees them all, wherever the machine around it has
// more. 0 is for a host that shares something with others.
func marker(boards, socket string, namespace uint64) string {
	b, _ := json.Marshal(struct {
		Version   int    `json:"version"`
		Boards    string `json:"boards"`
		Control   string `json:"control"`
		Namespace uint64 `json:"pid_namespace,omitempty"`
	}{1, boards, socket, namespace})
	return string(b) + "\n"
}

func markerFile(boards string) *tree.File {
	f := tree.Text(strings.TrimSuffix(marker(boards, "", 0), "\n"))
	f.Size = 0
	return f
}
