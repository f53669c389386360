package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

const pids0 = "/proc/driver/tenstorrent/0/pids"

func openNode(t *testing.T, h *sim.Host, n string) int {
	t.Helper()
	fd, err := unix.Open(h.Root()+"/dev/tenstorrent/"+n, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestPidsFollowOpenDescriptions(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150,p150a"})
	me := fmt.Sprintln(os.Getpid())
	if got := mustRead(t, h, pids0); got != "" {
		t.Fatalf("pids of an idle device: %q", got)
	}
	first := openNode(t, h, "0")
	worker := strings.TrimSuffix(ctl(t, h, "run", "name=w,devices=0+1,fds=2"), "\n")
	second := openNode(t, h, "0")
	// Newest first, one line per open description.
	if diff := cmp.Diff(me+worker+"\n"+worker+"\n"+me, mustRead(t, h, pids0)); diff != "" {
		t.Errorf("pids (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(worker+"\n"+worker+"\n", mustRead(t, h, "/proc/driver/tenstorrent/1/pids")); diff != "" {
		t.Errorf("pids of device 1 (-want +got):\n%s", diff)
	}
	dup, err := unix.Dup(first)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(first)
	if got := mustRead(t, h, "/sys/module/tenstorrent/refcnt"); got != "6\n" {
		t.Errorf("refcnt %q, want 6: a duplicate is the same description", got)
	}
	unix.Close(dup)
	unix.Close(second)
	ctl(t, h, "kill", "w")
	until(t, "pids to be empty", func() bool { return mustRead(t, h, pids0) == "" })
}

func TestExitedOpenerStaysListed(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	opener := strings.TrimSuffix(ctl(t, h, "run", "name=stale,orphan"), "\n")
	until(t, "the opener to end", func() bool {
		_, err := os.Stat("/proc/" + opener)
		return os.IsNotExist(err)
	})
	if got := mustRead(t, h, pids0); got != opener+"\n" {
		t.Errorf("pids %q, want the opener that is gone, %s", got, opener)
	}
	ctl(t, h, "kill", "stale")
	until(t, "the child to close it", func() bool { return mustRead(t, h, pids0) == "" })
	made := ctl(t, h, "opener", "0", "stale")
	ctl(t, h, "opener", "0", "0")
	if got := mustRead(t, h, pids0); got != "0\n"+made {
		t.Errorf("made-up openers read %q", got)
	}
	ctl(t, h, "opener", "0", "clear")
	if got := mustRead(t, h, pids0); got != "" {
		t.Errorf("after clearing: %q", got)
	}
}

// TestPidNamespaces has an opener and readers in several namespaces.
func TestPidNamespaces(t *testing.T) {
	for _, tt := range []struct {
		driver         string
		outside, other string // what a reader outside sees of a contained opener, and one in another container
		plain          string // what a contained reader sees of an opener outside
	}{
		{"2.10.0", "HOST", "0", "0"},
		{"2.6.0", "1", "1", "HOST"}, // the opener's own number, wherever it is read
	} {
		t.Run(tt.driver, func(t *testing.T) {
			t.Parallel()
			h := start(t, sim.Options{Boards: "2xn150", Driver: tt.driver})
			contained := strings.TrimSpace(ctl(t, h, "run", "name=box,devices=0,pidns"))
			plain := strings.TrimSpace(ctl(t, h, "run", "name=plain,devices=1"))
			if got, want := mustRead(t, h, pids0), strings.ReplaceAll(tt.outside, "HOST", contained)+"\n"; got != want {
				t.Errorf("outside: %q, want %q", got, want)
			}
			inner := func(path string) string {
				cmd := h.Command(context.Background(), "unshare", "--pid", "--fork", "cat", path)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return string(out)
			}
			if got := inner(pids0); got != tt.other+"\n" {
				t.Errorf("in another namespace: %q, want %q", got, tt.other)
			}
			if got, want := inner("/proc/driver/tenstorrent/1/pids"), strings.ReplaceAll(tt.plain, "HOST", plain)+"\n"; got != want {
				t.Errorf("opener outside, read inside: %q, want %q", got, want)
			}
		})
	}
}

// TestPidInReadersNamespace has opener and reader in the same inner one.
func TestPidInReadersNamespace(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	cmd := h.Command(context.Background(), "unshare", "--pid", "--fork", "sh", "-c", "exec 3</dev/tenstorrent/0; cat "+pids0)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "1\n" {
		t.Errorf("got %q, %v; want 1, the opener's pid in the reader's namespace", out, err)
	}
}

func TestAuditNamesWhoOpensNodes(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	mustRead(t, h, class("0", "tt_aiclk"))
	if got := ctl(t, h, "audit"); got != "" {
		t.Errorf("reading a file is in the audit: %s", got)
	}
	unix.Close(openNode(t, h, "0"))
	if got := ctl(t, h, "audit"); !strings.Contains(got, fmt.Sprintf(`"pid":%d`, os.Getpid())) || !strings.Contains(got, "O_RDWR") {
		t.Errorf("audit after an open: %s", got)
	}
}

func TestNodeAnswersWhoItIs(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("needs python3 to call ioctl")
	}
	h := start(t, sim.Options{Boards: "n150", Driver: "2.10.0"})
	script := `
import fcntl, os, struct
fd = os.open("/dev/tenstorrent/0", os.O_RDWR)
b = bytearray(24); struct.pack_into("<I", b, 0, 20); fcntl.ioctl(fd, 0xFA00, b); print(b[4:].hex())
b = bytearray(16); struct.pack_into("<I", b, 0, 12); fcntl.ioctl(fd, 0xFA05, b); print(b[4:].hex())
try: fcntl.ioctl(fd, 0xFA06, b)
except OSError as e: print(e.errno)
os.kill(os.getpid(), 19)  # stop, until the chip was reset
try: fcntl.ioctl(fd, 0xFA05, b)
except OSError as e: print(e.errno)
`
	cmd := h.Command(context.Background(), "python3", "-c", script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the program to stop", func() bool { return procState(cmd.Process.Pid) == 'T' })
	ctl(t, h, "reset", "0", "block=0s", "window=0s")
	until(t, "the reset to be over", func() bool { return !strings.Contains(ctl(t, h, "list"), "reset") })
	cmd.Process.Signal(unix.SIGCONT)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	// Refused is what needs a chip; dead is what was opened before a reset.
	want := "14000000521e1e40521e180000411c0000000000\n0c00000002000000020a0000\n22\n19\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("ioctl (-want +got):\n%s", diff)
	}
}
