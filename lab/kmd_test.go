package lab

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
)

// The module, the kernel that it was built for, and where ttmon and ttmond are.
const (
	moduleVar = "LAB_KO"
	kernelVar = "LAB_KERNEL"
	binVar    = "LAB_BIN"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == guestProgram {
		os.Exit(inGuest(os.Args[1:]))
	}
	hermetic.Enter(hermetic.Options{Limit: 40 * time.Minute})
	os.Exit(m.Run())
}

// guest is a virtual machine with one chip.
type guest struct {
	t       *testing.T
	arch    model.Arch
	chip    *Chip
	frozen  atomic.Bool       // its heartbeat stands still
	begun   atomic.Int64      // when its firmware started, in ns
	stopped atomic.Int64      // when its heartbeat was frozen, in ns
	section map[string]string // what it printed, by name
	marks   map[string]mark   // the chip's account, by name of the phase that began
}

// mark is what was done to the chip so far.
type mark struct{ messages, writes int }

func TestDriver(t *testing.T) {
	module, kernel := os.Getenv(moduleVar), os.Getenv(kernelVar)
	if module == "" || kernel == "" {
		t.Skip("needs a module of the driver and the kernel it was built for: make lab KO=FILE KERNEL=FILE")
	}
	for _, arch := range []model.Arch{model.Wormhole, model.Blackhole} {
		t.Run(string(arch), func(t *testing.T) {
			g := boot(t, arch, module, kernel)
			g.check()
		})
	}
}

// newChip is an emulated chip whose heart beats, with a program of tt-metal and
// two Ethernet cores.
func (g *guest) newChip() *Chip {
	words := arc.Sample(g.arch)
	words[28] = 19<<24 | 9<<16 // new enough to tell which links are up
	g.begun.Store(time.Now().UnixNano())
	c := NewChip(g.arch, func(tag uint16) (uint32, bool) {
		w, ok := words[tag]
		if tag == 32 {
			now := time.Now().UnixNano()
			if g.frozen.Load() {
				now = g.stopped.Load()
			}
			w += uint32(time.Duration(now-g.begun.Load()) / (100 * time.Millisecond))
		}
		return w, ok
	})
	c.Run(program(g.arch))
	for channel := range 2 {
		c.SetLink(link(channel))
	}
	return c
}

// program is the program of tt-metal that the chip runs.
func program(arch model.Arch) arc.Dispatch {
	d := arc.Dispatch{L1: 0x1000, X: 18, Y: 18, Workers: 64, Now: 1 << 40, Busy: 1 << 38, Programs: 77}
	if arch == model.Blackhole {
		d.X, d.Y = 1, 2
	}
	return d
}

func link(channel int) arc.Link {
	return arc.Link{Channel: channel, Up: true, Retrains: 3 + uint32(channel), Corrected: 1<<33 + 7, Uncorrected: 9}
}

func boot(t *testing.T, arch model.Arch, module, kernel string) *guest {
	t.Helper()
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Fatal("qemu-system-x86_64 is not installed (Debian: qemu-system-x86)")
	}
	g := &guest{t: t, arch: arch, section: map[string]string{}, marks: map[string]mark{}}
	g.chip = g.newChip()
	board := uint16(0x40)
	if arch == model.Wormhole {
		board = 0x18
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "device"), os.NewFile(uintptr(ends[1]), "qemu")
	defer ours.Close()
	served := make(chan error, 1)
	device := NewDevice(arch, g.chip, board)
	device.OnReset = func() { g.begun.Store(time.Now().UnixNano()) }
	go func() { served <- device.Serve(ours) }()
	root := filepath.Join(t.TempDir(), "initrd")
	if err := initrd(root, module, arch); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(qemu, "-machine", "pc,memory-backend=ram", "-object", "memory-backend-memfd,id=ram,size=1G,share=on", "-m", "1G", "-smp", "1",
		"-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot", "-kernel", kernel, "-initrd", root,
		"-append", "console=ttyS0 panic=-1 loglevel=4 no_timer_check", "-device", "x-pci-proxy-dev,id=chip,fd=3")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	g.follow(out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("qemu: %v", err)
	}
	ours.Close()
	<-served
	return g
}

// follow reads the guest's console: @@phase NAME, and what lies between @@begin
// NAME and @@end.
func (g *guest) follow(console io.Reader) {
	lines := bufio.NewScanner(console)
	lines.Buffer(nil, 4<<20)
	name := ""
	var text strings.Builder
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case word == "@@phase":
			g.marks[rest] = mark{len(g.chip.Messages()), len(g.chip.Writes())}
			g.chip.SetDead(rest == "dead")
			g.stopped.Store(time.Now().UnixNano())
			g.frozen.Store(rest == "frozen")
			g.t.Log("phase", rest)
		case word == "@@begin":
			name = rest
			text.Reset()
		case word == "@@end":
			g.section[name] = text.String()
			name = ""
		case name != "":
			text.WriteString(line + "\n")
		default:
			g.t.Log("guest:", line)
		}
	}
}
