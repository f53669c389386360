package chipread_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/chipread"
)

// misdeed is the variable that makes the test program do, confined as a reader
// is, what a reader must not.
const misdeed = "CHIPREAD_TEST_MISDEED"

func TestMain(m *testing.M) {
	if name := os.Getenv(misdeed); name != "" {
		os.Exit(offend(name))
	}
	programs.Main(hermetic.Options{}, func(bin string) int {
		ttmond = bin + "/ttmond"
		return m.Run()
	})
}

// ttmond is the daemon as it is released: a test that looks for races is built
// with C, whose threads make calls that are not on a reader's list.
var ttmond string

// start runs it as a reader.
func start(t *testing.T, r chipread.Request) (stages string, answer chipread.Response) {
	t.Helper()
	request, err := json.Marshal([]chipread.Request{r})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(ttmond, chipread.Flag)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the reader: %v; it wrote %q", err, out)
	}
	at := bytes.IndexByte(out, '{')
	if err := json.Unmarshal(out[at:], &answer); err != nil {
		t.Fatal(err)
	}
	return string(out[:at]), answer
}

// startAll runs it as a reader of several chips.
func startAll(t *testing.T, requests ...chipread.Request) (answers []chipread.Response) {
	t.Helper()
	request, err := json.Marshal(requests)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(ttmond, chipread.Flag)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the reader: %v; it wrote %q", err, out)
	}
	for line := range bytes.Lines(out) {
		var a chipread.Response
		if err := json.Unmarshal(line[bytes.IndexByte(line, '{'):], &a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	if len(answers) != len(requests) {
		t.Fatalf("%d answers to %d requests", len(answers), len(requests))
	}
	return answers
}

// resource makes a file with the contents of Wormhole's BAR4.
func resource(t *testing.T, c *arc.Chip) string {
	t.Helper()
	image := make([]byte, arc.FlatSize)
	for _, part := range [][2]uint64{{0x1E8_0000, 0x1F0_0000}, {0x1F3_0000, 0x1F3_1000}} {
		for at := part[0]; at < part[1]; at += 4 {
			binary.LittleEndian.PutUint32(image[at:], c.LoadFlat(at))
		}
	}
	path := filepath.Join(t.TempDir(), "resource4")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tt_heartbeat")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProcess(t *testing.T) {
	path := resource(t, arc.New(model.Wormhole, arc.Fixed(arc.Sample(model.Wormhole))))
	r := chipread.Request{Arch: model.Wormhole, Way: model.ByResource, Path: path, Heartbeat: file(t, "12345\n"), First: true}
	stages, got := start(t, r)
	if stages != "hc" || got.Cause != "" || got.Words[54] != 71 {
		t.Errorf("stages %q, cause %q (errno %d), words %v", stages, got.Cause, got.Errno, got.Words)
	}
	r.Heartbeat = file(t, "4294967295\n")
	if stages, got = start(t, r); stages != "h" || got.Cause != model.ReadAllOnes {
		t.Errorf("a chip off the bus was touched: stages %q, cause %q", stages, got.Cause)
	}
	r.Heartbeat = path + ".absent"
	if stages, got = start(t, r); stages != "" || got.Cause != model.ChipGone {
		t.Errorf("a chip that is gone was touched: stages %q, cause %q", stages, got.Cause)
	}
	r.Heartbeat, r.Path = "", path+".absent"
	if _, got = start(t, r); got.Cause != model.ChipGone {
		t.Errorf("no file: cause %q", got.Cause)
	}
}

// A load of a mapping that the driver has taken away ends with SIGBUS: an ordinary
// answer, and the chips behind it are read.
func TestProcessAfterSIGBUS(t *testing.T) {
	path := resource(t, arc.New(model.Wormhole, arc.Fixed(arc.Sample(model.Wormhole))))
	short := file(t, "a file without the pages that are mapped")
	by := func(path string) chipread.Request {
		return chipread.Request{Arch: model.Wormhole, Way: model.ByResource, Path: path, First: true}
	}
	got := startAll(t, by(path), by(short), by(path))
	for i, want := range []model.TelemetryCause{"", model.ResetWhileRead, ""} {
		if got[i].Cause != want || want == "" && got[i].Words[54] != 71 {
			t.Errorf("chip %d: cause %q (errno %d), want %q", i, got[i].Cause, got[i].Errno, want)
		}
	}
}

func TestHeartbeatCause(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		err        error
		took       time.Duration
		want       model.TelemetryCause
	}{
		{"it beats", "77\n", nil, time.Millisecond, ""},
		{"ENODATA: the driver fences a reset", "", unix.ENODATA, 0, model.ResetUnderWay},
		{"held up by a reset", "77\n", nil, time.Second, model.ResetUnderWay},
		{"ENODEV: removed", "", unix.ENODEV, 0, model.ChipGone},
		{"off the bus", "4294967295\n", nil, 0, model.ReadAllOnes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := chipread.HeartbeatCause(tt.text, tt.err, tt.took); got != tt.want {
				t.Errorf("cause %q, want %q", got, tt.want)
			}
		})
	}
}

// A node that is none: the driver's requests fail, and nothing else happens.
func TestProcessOnAFileThatIsNoNode(t *testing.T) {
	r := chipread.Request{Arch: model.Blackhole, Way: model.ByNode, Path: file(t, ""), BusID: "0000:01:00.0"}
	if stages, got := start(t, r); stages != "c" || got.Cause != model.ChipGone || got.Errno != int(unix.ENOTTY) {
		t.Errorf("stages %q, cause %q, errno %d", stages, got.Cause, got.Errno)
	}
}

// misdeeds are what must end a reader at once.
var misdeeds = map[string]func() error{
	"open a file for writing": func() error {
		_, err := unix.Open("/dev/null", unix.O_WRONLY, 0)
		return err
	},
	"open a node as a client does": func() error {
		_, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
		return err
	},
	"map a file to write": func() error {
		_, err := unix.MmapPtr(0, 0, nil, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	},
	"map memory to run": func() error {
		_, err := unix.MmapPtr(-1, 0, nil, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		return err
	},
	"make a mapping writable": func() error {
		_, _, e := unix.Syscall(unix.SYS_MPROTECT, 0, 4096, unix.PROT_WRITE)
		return e
	},
	"reset the chip":         request(0xFA06),
	"vote for power":         request(0xFA0F),
	"send a message":         request(0xFA11),
	"write over the NoC":     request(0xFA13),
	"take a lock":            request(0xFA08),
	"pin memory":             request(0xFA07),
	"talk to the network":    func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err },
	"run a program":          func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
	"kill another":           func() error { return unix.Kill(1, 0) },
	"write to other outputs": func() error { _, err := unix.Write(2, []byte("x")); return err },
	"trace another": func() error {
		_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1, 0, 0, 0, 0)
		return e
	},
}

func request(cmd uintptr) func() error {
	return func() error {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, 0, cmd, 0)
		return e
	}
}

func offend(name string) int {
	runtime.LockOSThread()
	if err := chipread.Confine(true); err != nil {
		println("confining:", err.Error())
		return 3
	}
	if misdeeds[name] == nil {
		return 4
	}
	_ = misdeeds[name]()
	return 0 // it was let
}

func TestSystemCallsThatEndAReader(t *testing.T) {
	for name := range misdeeds {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), misdeed+"="+name)
			out, err := cmd.CombinedOutput()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGSYS {
				t.Errorf("it ended with %v, and said %q; want the signal SIGSYS", err, out)
			}
		})
	}
}
