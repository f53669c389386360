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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/sim/control"
	"github.com/ttmon/ttmon/internal/sim/driver"
	"github.com/ttmon/ttmon/internal/sim/tree"
	"github.com/ttmon/ttmon/internal/sim/workload"
)

// Tree is a simulated host as a plain directory, for programs that take a
// root directory and for machines where nothing else is allowed. Its files
// neither fail nor block.
type Tree struct {
	Dir     string
	Control string // path of the control socket

	host    *control.Host
	plain   *tree.Plain
	run     string // directory of the control socket, if it is ours
	control *listener
	stop    context.CancelFunc
	wait    sync.WaitGroup
	updates sync.Mutex
	round   int   // of updates
	workers []int // pids of the workloads at the last one
}

// refresh is how often a Tree's files are rewritten.
const refresh = 100 * time.Millisecond

// NewTree makes a plain tree in dir, which must be empty, not there yet, or
// made by an earlier NewTree. Its values move until Close; the files stay.
func NewTree(o Options, dir string) (*Tree, error) {
	if err := o.check(); err != nil {
		return nil, &OptionError{err}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := claim(dir); err != nil {
		return nil, err
	}
	t := &Tree{Dir: dir, plain: tree.NewPlain(dir)}
	if t.host, err = o.newHost(driver.Surroundings{Nodes: numaNodes()}, dir); err != nil {
		return nil, err
	}
	t.host.Driver.OnChange = t.describe
	if err := t.start(o); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Tree) start(o Options) error {
	t.Control = o.Control
	if t.Control == "" {
		var err error
		if t.run, err = os.MkdirTemp("", "ttmon-sim-"); err != nil {
			return err
		}
		t.Control = filepath.Join(t.run, "control")
	}
	t.host.Driver.Root.Dir("sys").Add("ttmon-sim", markerFile(o.Boards, t.Control))
	t.links()
	t.describe()
	if err := t.update(); err != nil { // the nodes must be there for the workloads
		return err
	}
	play, err := o.begin(t.host)
	if err != nil {
		return err
	}
	if err := t.update(); err != nil {
		return err
	}
	if t.control, err = listen(t.Control, t.host); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.wait.Go(func() { play(ctx) })
	t.wait.Go(func() { t.rewriteLoop(ctx) })
	return nil
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

// update brings openers and files to what is true now.
func (t *Tree) update() error {
	t.updates.Lock()
	defer t.updates.Unlock()
	if t.round%scanEvery == 0 || t.workloadsChanged() {
		t.openers()
	}
	t.round++
	places := t.host.Driver.Places()
	return t.plain.Update(t.host.Driver.Root, func(path string) bool {
		return slices.Contains(optional, path) && !slices.Contains(places, path)
	})
}

// scanEvery is how many updates pass between two looks at all processes.
const scanEvery = 5

// workloadsChanged reports whether a workload came or went since it was asked
// last.
func (t *Tree) workloadsChanged() bool {
	var pids []int
	for _, p := range t.host.Workloads.List() {
		pids = append(pids, p.PID)
	}
	changed := !slices.Equal(pids, t.workers)
	t.workers = pids
	return changed
}

// openers finds out who has the nodes open. The workloads are known; others
// are looked for in /proc, as far as we may look.
func (t *Tree) openers() {
	holders := make(map[int][]int) // pids by device, newest last
	own := make(map[int]bool)
	for _, p := range t.host.Workloads.List() {
		own[p.PID] = true
		for _, index := range p.Spec.Devices {
			holders[index] = append(holders[index], slices.Repeat([]int{p.PID}, p.Spec.FDs)...)
		}
	}
	prefix := filepath.Join(t.Dir, "dev/tenstorrent") + "/"
	pids := make(map[string]bool)
	for _, name := range names("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		open := openNodes(pid, prefix)
		if len(open) > 0 && workload.IsOne(pid) {
			continue // listed above, or an inheritor, which the driver does not know
		}
		for _, index := range open {
			holders[index] = append(holders[index], pid)
			pids[name] = true
		}
	}
	for _, index := range t.host.Driver.Indices() {
		list := holders[index]
		slices.Reverse(list)
		t.host.Driver.SetOpeners(index, list)
	}
	for pid := range own {
		pids[strconv.Itoa(pid)] = true
	}
	t.processLinks(pids)
}

// openNodes lists the indices of the nodes a process has open, once for each
// descriptor.
func openNodes(pid int, prefix string) []int {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []int
	for _, e := range entries {
		to, _ := os.Readlink(filepath.Join(dir, e.Name()))
		if rest, ok := strings.CutPrefix(to, prefix); ok {
			if index, err := strconv.Atoi(rest); err == nil {
				list = append(list, index)
			}
		}
	}
	return list
}

// links makes the rest of what a monitor reads below its root lead to the
// real host.
func (t *Tree) links() {
	root := t.host.Driver.Root
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

// processLinks makes proc/PID lead to the real process for those that use a
// device, and for no other.
func (t *Tree) processLinks(pids map[string]bool) {
	proc := t.host.Driver.Root.Dir("proc")
	for _, name := range proc.Names() {
		if _, err := strconv.Atoi(name); err == nil && !pids[name] {
			proc.Remove(name)
		}
	}
	for pid := range pids {
		if proc.Get(pid) == nil {
			proc.Add(pid, &tree.Link{Target: "/proc/" + pid})
		}
	}
}

// Ctl sends a command to the tree's host.
func (t *Tree) Ctl(args ...string) (string, error) { return t.host.Do(args) }

// Close ends the workloads and leaves the files as they are, without them.
func (t *Tree) Close() error {
	if t.control != nil {
		t.control.close()
	}
	if t.stop != nil {
		t.stop()
	}
	t.wait.Wait()
	t.host.Driver.Close()
	t.host.Workloads.Close()
	err := t.update()
	t.plain.Close()
	if t.run != "" {
		os.RemoveAll(t.run)
	}
	return err
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

func markerFile(boards, socket string) *tree.File {
	f := tree.Text(strings.TrimSuffix(marker(boards, socket, 0), "\n"))
	f.Size = 0
	return f
}
