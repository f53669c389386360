package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/sim/driver"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
	"golang.org/x/sys/unix"
)

// procFiles puts into the tree the files of /proc that show the module or the
// machine, made from the host's own text at each read.
func (s *server) procFiles() error {
	edits := map[string]func([]byte) []byte{
		"devices": s.addMajor,
		"modules": s.addModule,
		pciTable:  s.addFunctions,
	}
	if s.galaxy() && !s.cfg.VM {
		edits["cpuinfo"] = bareMetal
	}
	for name, edit := range edits {
		f, err := openHostFile("/proc/" + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without modules
		}
		if err != nil {
			return err
		}
		s.edited = append(s.edited, "/proc/"+name)
		dir, base := path.Split("proc/" + name)
		s.host.Driver.Root.At(path.Clean(dir)).Add(base, &tree.File{Mode: 0o444, Show: func(tree.Caller) ([]byte, syscall.Errno) {
			text, err := f.read()
			if err != nil {
				return nil, syscall.EIO
			}
			return edit(text), 0
		}})
	}
	return nil
}

// pciTable is the kernel's list of all PCI functions, below /proc.
const pciTable = "bus/pci/devices"

// addFunctions adds the simulated functions to the table, in place of real
// Tenstorrent ones.
func (s *server) addFunctions(text []byte) (table []byte) {
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) < 2 || !bytes.HasPrefix(f[1], []byte("1e52")) {
			table = append(table, line...)
		}
	}
	return append(table, s.host.Driver.PCITable()...)
}

func (s *server) galaxy() bool {
	for _, d := range s.host.Driver.Devices() {
		if d.Chip().Spec().Galaxy() {
			return true
		}
	}
	return false
}

// addMajor adds the driver's line to the character devices.
func (s *server) addMajor(text []byte) []byte {
	if !s.host.Driver.Loaded() {
		return withoutDriver(text)
	}
	chars, blocks, _ := bytes.Cut(withoutDriver(text), []byte("\nBlock devices:"))
	return fmt.Appendf(chars, "%3d tenstorrent\n\nBlock devices:%s", s.host.Driver.Major(), blocks)
}

func (s *server) addModule(text []byte) []byte {
	text = withoutDriver(text)
	if !s.host.Driver.Loaded() {
		return text
	}
	return append(fmt.Appendf(nil, "tenstorrent %d %d - Live 0x0000000000000000 (OE)\n", driver.CoreSize, s.host.Driver.OpenCount()), text...)
}

// withoutDriver drops the lines of the host's real driver.
func withoutDriver(text []byte) (kept []byte) {
	for line := range bytes.Lines(text) {
		if !slices.ContainsFunc(bytes.Fields(line), func(w []byte) bool { return string(w) == "tenstorrent" }) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// bareMetal takes away the sign of a virtual machine, in which a monitor must
// not trust the bus numbers that give the place in a Galaxy.
func bareMetal(text []byte) []byte { return bytes.ReplaceAll(text, []byte(" hypervisor"), nil) }

// hostFile keeps a file of the host readable when it is covered.
type hostFile struct{ fd int }

func openHostFile(path string) (hostFile, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return hostFile{}, fmt.Errorf("opening %s: %w", path, err)
	}
	return hostFile{fd}, nil
}

// read returns the whole text as it is now.
func (f hostFile) read() ([]byte, error) {
	var text []byte
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Pread(f.fd, buf, int64(len(text)))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || n == 0:
			return text, err
		}
		text = append(text, buf[:n]...)
	}
}
