// Package kmd runs ttmon, ttmond and the reader of chips with the real driver, in
// a virtual machine, on emulated chips (make test-kmd KO=FILE KERNEL=FILE).
package kmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/chipread"
	"github.com/ttmon/ttmon/internal/e2e/programs"
	"github.com/ttmon/ttmon/internal/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/sim/arc"
	"github.com/ttmon/ttmon/internal/sim/arc/proxy"
	"github.com/ttmon/ttmon/internal/telemetry"
	"github.com/ttmon/ttmon/internal/wire"
)

// The module and the kernel that it was built for.
const (
	moduleVar = "KMD_KO"
	kernelVar = "KMD_KERNEL"
)

var bin string

func TestMain(m *testing.M) {
	if os.Getenv(moduleVar) == "" {
		hermetic.Main(m) // one test, which says what it lacks
		return
	}
	programs.Main(hermetic.Options{Limit: 40 * time.Minute}, func(dir string) int {
		bin = dir
		return m.Run()
	})
}

// guest is a virtual machine with one chip.
type guest struct {
	t       *testing.T
	arch    model.Arch
	chip    *arc.Chip
	section map[string]string // what it printed, by name
	marks   map[string]mark   // the chip's account, by name of the phase that began
}

// mark is what was done to the chip so far.
type mark struct {
	messages, writes int
	reads            uint64
}

func TestDriver(t *testing.T) {
	module, kernel := os.Getenv(moduleVar), os.Getenv(kernelVar)
	if module == "" || kernel == "" {
		t.Skip("needs a module of the driver and the kernel it was built for: make test-kmd KO=FILE KERNEL=FILE")
	}
	for _, arch := range []model.Arch{model.Wormhole, model.Blackhole} {
		t.Run(string(arch), func(t *testing.T) {
			g := boot(t, arch, module, kernel)
			g.check()
		})
	}
}

// newChip is an emulated chip whose heart beats.
func newChip(arch model.Arch) *arc.Chip {
	words, begun := arc.Sample(arch), time.Now()
	words[28] = 19<<24 | 9<<16 // new enough to tell which links are up
	var frozen atomic.Bool
	return arc.New(arch, func(tag uint16) (uint32, bool) {
		w, ok := words[tag]
		if tag == 32 && !frozen.Load() {
			w += uint32(time.Since(begun) / (100 * time.Millisecond))
		}
		return w, ok
	})
}

func boot(t *testing.T, arch model.Arch, module, kernel string) *guest {
	t.Helper()
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Fatal("qemu-system-x86_64 is not installed (Debian: qemu-system-x86)")
	}
	g := &guest{t: t, arch: arch, chip: newChip(arch), section: map[string]string{}, marks: map[string]mark{}}
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
	go func() { served <- proxy.New(arch, g.chip, board).Serve(ours) }()
	root := filepath.Join(t.TempDir(), "initrd")
	if err := initrd(root, module, arch); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(qemu, "-machine", "pc,memory-backend=ram", "-object", "memory-backend-memfd,id=ram,size=1G,share=on", "-m", "1G", "-smp", "1",
		"-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot", "-kernel", kernel, "-initrd", root,
		"-append", "console=ttyS0 panic=-1 loglevel=4", "-device", "x-pci-proxy-dev,id=chip,fd=3")
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
			g.marks[rest] = mark{len(g.chip.Messages()), len(g.chip.Writes()), g.chip.Reads()}
			g.chip.SetFaults(arc.Faults{Dead: rest == "dead"})
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

func (g *guest) say(name string) string { return strings.TrimSpace(g.section[name]) }

// check compares what the guest said with what the chip has.
func (g *guest) check() {
	t := g.t
	version := g.say("version")
	if version == "" {
		t.Fatal("the driver did not load")
	}
	old := version == "2.6.0" && g.arch == model.Blackhole // sends a message at close
	for _, way := range []string{"resource4", "node"} {
		if g.arch == model.Blackhole && way == "resource4" {
			continue
		}
		compared, wrong := g.words(way)
		messages := g.marks[way+"-after"].messages - g.marks[way].messages
		t.Logf("| %s | %s | %s | %d words compared, %d wrong | %d messages, %d writes |", version, g.arch, way, compared, wrong, messages,
			g.marks[way+"-after"].writes-g.marks[way].writes)
		if compared == 0 || wrong > 0 {
			t.Errorf("%s: %d words compared, %d wrong", way, compared, wrong)
		}
		if messages != 0 && !(old && way == "node" && messages == 1) {
			t.Errorf("%s: %d firmware messages: %x", way, messages, g.chip.Messages())
		}
	}
	if w := g.chip.Writes(); len(w) > 0 {
		t.Errorf("writes over the NoC: %v", w)
	}
	for _, when := range []string{"before", "off", "node", "table"} {
		if n := g.say("refcnt-" + when); n != "0" {
			t.Errorf("refcnt after %s: %q", when, n)
		}
		if p := g.say("pids-" + when); p != "" {
			t.Errorf("pids after %s: %q", when, p)
		}
	}
	if n := g.marks["off-after"].messages - g.marks["off"].messages; n != 0 {
		t.Errorf("%d messages while ttmond was told not to read the chip", n)
	}
	g.daemon(version, old)
	if g.arch == model.Wormhole {
		g.powerDown(version)
	}
	var dead chipread.Response
	if err := answer(g.section["dead"], &dead); err != nil || dead.Cause != model.ReadAllOnes {
		t.Errorf("a chip off the bus: %q, %v", dead.Cause, err)
	}
}

// answer decodes what a reader printed, behind its stages.
func answer(text string, a *chipread.Response) error {
	at := strings.IndexByte(text, '{')
	if at < 0 {
		return fmt.Errorf("no answer: %q", text)
	}
	return json.Unmarshal([]byte(strings.TrimSpace(text[at:])), a)
}

// words compares the words that a reader read with those of the chip.
func (g *guest) words(way string) (compared, wrong int) {
	var a chipread.Response
	if err := answer(g.section["words-"+way], &a); err != nil || a.Cause != "" {
		g.t.Errorf("%s: cause %q (errno %d), %v", way, a.Cause, a.Errno, err)
		return 0, 0
	}
	for tag, want := range arc.Sample(g.arch) {
		if tag == 32 || tag == 28 || len(telemetry.Wanted(g.arch, []telemetry.Entry{{Tag: tag}}, true)) == 0 {
			continue
		}
		compared++
		if got, ok := a.Words[tag]; !ok || got != want {
			wrong++
			g.t.Errorf("%s: tag %d is %#x, want %#x", way, tag, got, want)
		}
	}
	return compared, wrong
}

// daemon checks what ttmond made of it.
func (g *guest) daemon(version string, refused bool) {
	t := g.t
	for _, name := range []string{"smi-off", "smi-table"} {
		s, err := wire.Decode([]byte(g.section[name]))
		if err != nil || len(s.Devices) != 1 {
			t.Errorf("%s: %v\n%s", name, err, g.section[name])
			continue
		}
		d := &s.Devices[0]
		tel := &d.Telemetry
		if len(s.Processes) > 0 {
			t.Errorf("%s: somebody uses the device: %+v", name, s.Processes)
		}
		switch {
		case name == "smi-off":
			if tel.State != model.TelemetryOff {
				t.Errorf("off: state %q", tel.State)
			}
		case refused:
			if tel.Cause != model.CloseSendsMessage {
				t.Errorf("driver %s: state %q, cause %q", version, tel.State, tel.Cause)
			}
		case tel.State != model.TelemetryOK || !tel.BoardPower.Known() || tel.BoardPower.V != float64(arc.Sample(g.arch)[54]):
			t.Errorf("driver %s: state %q, cause %q, board power %+v", version, tel.State, tel.Cause, tel.BoardPower)
		}
	}
	if n := g.marks["table-after"].messages - g.marks["table"].messages; n != 0 {
		t.Errorf("%d firmware messages while ttmond read the chip", n)
	}
}

// powerDown checks that the power-down of an idle Wormhole still comes while it
// is read: drivers since 2.9 send it 5 s after the last close.
func (g *guest) powerDown(version string) {
	sent := g.chip.Messages()[g.marks["power"].messages:]
	voted, gone := false, false
	for _, m := range sent {
		voted = voted || m == 0x7FFE0FC0
		gone = gone || voted && m == 0x00000FC0
	}
	g.t.Logf("driver %s: messages of an open and a close while the chip is read: %#x", version, sent)
	if voted && !gone {
		g.t.Errorf("the power-down was lost: %#x", sent)
	}
}
