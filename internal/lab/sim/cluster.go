package sim

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
	"github.com/ttmon/ttmon/internal/lab/sim/nsroot"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
	"github.com/ttmon/ttmon/internal/source/umd"
	"golang.org/x/sys/unix"
)

// Marker is the file that says that a host is simulated.
const Marker = "/sys/ttmon-sim"

// MockDescriptor is the one for tt-metal. Commands in a simulated host have it
// in their environment, so that a ttnn program runs on the simulated boards.
const MockDescriptor = cluster.Dir + "/" + cluster.Name

// setMock points tt-metal to the boards of the host that process pid holds,
// if it has any.
func setMock(pid int) {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/root%s", pid, MockDescriptor)); err == nil {
		os.Setenv(umd.MockPathVar, MockDescriptor)
	}
}

// clusterSource is the directory that is seen at cluster.Dir.
func (s *server) clusterSource() string { return filepath.Join(s.cfg.Dir, "cluster") }

// makeCluster writes the descriptors, and makes room for UMD's own in /tmp. On
// the real host that directory stays empty: it is covered in ours.
func (s *server) makeCluster() (err error) {
	if err := os.Mkdir(s.clusterSource(), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(s.clusterSource(), 0o755); err != nil {
		return err
	}
	if err := s.writeCluster(); err != nil {
		return fmt.Errorf("describing the boards for tt-metal: %w", err)
	}
	if s.cfg.UMDDump {
		if s.dump, err = os.MkdirTemp("/tmp", "umd_"); err != nil {
			return fmt.Errorf("leaving UMD's descriptor: %w", err)
		}
	}
	return nil
}

func (s *server) writeCluster() error {
	c, err := cluster.Of(s.host.Driver, s.host.Cluster)
	if err != nil {
		return err
	}
	c.Connect(s.host.Driver)
	return c.Write(s.clusterSource())
}

// describe writes the descriptors again, after devices came or went.
func (s *server) describe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writeCluster(); err != nil {
		slog.Error("cannot describe boards for tt-metal", "err", err)
	}
}

func (s *server) showCluster(p *nsroot.Plan) {
	p.Insert[cluster.Dir] = s.clusterSource()
	if s.dump != "" {
		p.Cover[s.dump] = s.clusterSource()
	}
}

func (s *server) dropCluster() {
	if s.dump == "" {
		return
	}
	if err := unix.Unmount(s.dump, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		slog.Error("simulated host failed", "err", err)
	}
	if err := os.Remove(s.dump); err != nil {
		slog.Error("simulated host failed", "err", err)
	}
}

// describe puts the descriptors into the tree. Its real ttnn programs would
// account in the real /dev/shm, where no program reads the tree: they are for
// users who want to look.
func (t *Tree) describe() error {
	c, err := cluster.Of(t.host.Driver, t.host.Cluster)
	if err != nil {
		return fmt.Errorf("describing the boards for tt-metal: %w", err)
	}
	c.Connect(t.host.Driver)
	dir := t.host.Driver.Root.Dir("dev").Dir(filepath.Base(cluster.Dir))
	for name, text := range c.Files() {
		dir.Add(name, tree.Text(strings.TrimSuffix(string(text), "\n")))
	}
	return nil
}
