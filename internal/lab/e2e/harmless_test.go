package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// call is one way to run ttmon.
type call struct {
	args []string
	// On a terminal: what to type once something was drawn, to end it.
	keys string
	// Into a pipe that is closed after so many bytes: how a loop ends.
	bytes int64
	code  int // its exit code
}

// notViewers are commands that do more than look, and why they are not tried.
var notViewers = map[string]string{
	"selftest": "it starts ttmon and other programs to measure and compare; TestSelftest looks at the devices",
	"run":      "it starts a program of the user's, with a ledger in /dev/shm; what that leaves is tested with libttmon",
}

// calls is how each command is run by TestHarmless. A command of the tree that
// is not here is an error, so that none is forgotten; own is the file that a
// command may write, recording the one that record writes and others read.
func calls(own, recording string) map[string][]call {
	return map[string][]call{
		"smi": {
			{args: nil},
			{args: []string{"-L"}},
			{args: []string{"-q"}},
			{args: []string{"--json"}},
			{args: []string{"--sample", "100"}},
			{args: []string{"--query-device=index,temperature.asic,memory.used,pcie.rx", "--format=csv"}},
			{args: []string{"--query-apps=pid,used_memory", "--format=csv"}},
			{args: []string{"--help-query-device"}},
			{args: []string{"-s", "--snapshot_no_tty"}},
			{args: []string{"-ls"}},
			{args: []string{"-s", "-f", own}},
			{args: []string{"-f", own}},
			{args: []string{"-lms", "50", "--json"}, bytes: 20_000},
			{args: []string{"-l", "0.05"}, bytes: 4000},
			{args: []string{"-w"}, keys: "\x03"},
			{args: []string{"-r", "100", "-i", "0"}, keys: "\x03"},
		},
		"smi dmon":      {{args: []string{"-c", "2", "--interval", "0.1"}}},
		"smi pmon":      {{args: []string{"-c", "2", "--interval", "0.1"}}},
		"dmon":          {{args: []string{"--interval", "0.05"}, bytes: 1000}, {args: []string{"-c", "1", "-f", own}}, {args: []string{"--interval", "0.1"}, keys: "\x03"}},
		"pmon":          {{args: []string{"--interval", "0.05"}, bytes: 1000}, {args: []string{"-c", "1", "--format", "csv"}}},
		"top":           {{keys: "q"}, {args: []string{"-s"}}},
		"mem":           {{args: []string{"--once"}}, {args: []string{"--plain", "-r", "100"}, bytes: 200}, {keys: "q"}},
		"record":        {{args: []string{"-o", recording, "--interval", "100ms", "--duration", "4s"}}},
		"replay":        {{args: []string{recording, "smi"}}, {args: []string{recording, "--at", "peak", "smi", "--json"}}, {args: []string{recording}, keys: "q"}},
		"export":        {{args: []string{recording, "--perfetto"}}, {args: []string{recording, "--csv", "-o", "-"}}},
		"diff":          {{args: []string{recording + "@start", recording}}, {args: []string{recording, recording, "--json"}}},
		"stale":         {{}, {args: []string{"--json"}}},
		"topo":          {{args: []string{"-m"}}, {args: []string{"--links"}}},
		"smi topo":      {{args: []string{"-m"}}},
		"ops":           {{args: []string{"--once"}}, {args: []string{"--once", "--json"}}},
		"why":           {{code: 3}}, // no daemon keeps failures
		"doctor":        {{}, {args: []string{"--json"}}, {args: []string{"--bundle", own + "-bundle"}}},
		"jobs":          {{code: 3}}, // no server keeps jobs
		"runs":          {{code: 3}},
		"check":         {{args: []string{"--sample", "100", "-w", "temperature.asic=200"}}},
		"version":       {{}},
		"daemon":        {{}},
		"daemon status": {{code: 3}, {args: []string{"--json"}, code: 3}}, // none is running
		"daemon reload": {{code: 3}},
		"events":        {{code: 3}},
		"history":       {{args: []string{"core_power"}, code: 3}},
		"sd":            {{args: []string{"lab-1", "lab-2"}}},
		"fleet":         {{code: 2}}, // it needs an address
		"web":           {{code: 3}},
	}
}

// TestHarmless runs every command under strace: no device node is opened,
// nothing is opened for writing but the command's own output, no file of others
// is locked, changed or removed, and no process gets a signal.
func TestHarmless(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal("strace is not installed; make test installs it")
	}
	h := start(t, sim.Options{Boards: "n150,n300,p150a"})
	ctl(t, h, "run", "name=llama,devices=0+1")
	recording := filepath.Join(t.TempDir(), "out.ttrec")
	try := func(t *testing.T, command string, i int) {
		dir := t.TempDir()
		log, own := filepath.Join(dir, "strace"), filepath.Join(dir, "out")
		if command == "record" {
			own = recording
		}
		c := calls(own, recording)[command][i]
		args := []string{"-f", "-y", "-qq", "-o", log, "-e", "trace=" + touching, filepath.Join(bin, "ttmon")}
		home := t.TempDir()
		c.run(t, h, home, strace, append(append(args, strings.Fields(command)...), c.args...))
		// An export lies beside the recording; top keeps runs.
		checkTrace(t, log, own, strings.TrimSuffix(recording, "ttrec")+"perfetto", filepath.Join(home, ".local"))
	}
	// What others read is written first; they mostly wait, and do so together.
	for i := range calls("", recording)["record"] {
		t.Run("record", func(t *testing.T) { try(t, "record", i) })
	}
	t.Run("others", func(t *testing.T) {
		for _, command := range commands(t, h) {
			list := calls("OWN", "RECORDING")[command]
			if len(list) == 0 && notViewers[command] == "" {
				t.Errorf("ttmon %s is not tried here: add it to calls", command)
			}
			for i, c := range list {
				if command == "record" {
					continue
				}
				name := strings.Join(append(strings.Fields(command), c.args...), " ")
				if c.keys != "" {
					name += " on a terminal"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					try(t, command, i)
				})
			}
		}
	})
	for line := range strings.Lines(ctl(t, h, "audit")) {
		var touched struct{ Comm, What string }
		if err := json.Unmarshal([]byte(line), &touched); err != nil {
			t.Fatal(err)
		}
		if touched.Comm != "llama" {
			t.Errorf("the simulated driver saw a process at its nodes: %s", line)
		}
	}
}

// commands asks the binary itself for all of its commands, by way of shell
// completion.
func commands(t *testing.T, h *sim.Host) []string {
	t.Helper()
	var list []string
	var below func(path ...string)
	below = func(path ...string) {
		r := runIn(t, h, append(append([]string{"__complete"}, path...), "")...)
		for line := range strings.Lines(r.out) {
			name, help, ok := strings.Cut(strings.TrimSpace(line), "\t")
			if !ok || help == "" || name == "help" || name == "completion" || strings.HasPrefix(name, "-") {
				continue
			}
			here := append(path[:len(path):len(path)], name)
			list = append(list, strings.Join(here, " "))
			below(here...)
		}
	}
	below()
	if len(list) < 5 {
		t.Fatalf("the binary names only these commands: %q", list)
	}
	return list
}

// run ends the command in the way it was called to end.
func (c call) run(t *testing.T, h *sim.Host, home, program string, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := h.Command(ctx, program, args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=") // runs that a ttmon top of this user has kept are not the test's
	switch {
	case c.keys != "":
		c.runOnTerminal(t, cmd, home)
	case c.bytes > 0:
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if n, err := io.CopyN(io.Discard, out, c.bytes); err != nil {
			t.Errorf("the loop ended after %d bytes: %v", n, err)
		}
		out.Close()
		cmd.Wait() // ended by SIGPIPE
	default:
		if r := finish(t, cmd); r.code != c.code {
			t.Fatalf("exit code %d, want %d: %s%s", r.code, c.code, r.err, r.out)
		}
	}
}

func (c call) runOnTerminal(t *testing.T, cmd *exec.Cmd, home string) {
	t.Helper()
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LANG=C.UTF-8", "HOME="+home, "XDG_STATE_HOME=")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	buf := make([]byte, 64<<10)
	var seen []byte
	for drawn := false; ; {
		n, err := tty.Read(buf)
		seen = append(seen, buf[:n]...)
		if !drawn && len(seen) > 600 {
			drawn = true
			if _, err := tty.WriteString(c.keys); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil { // the other end is closed: it has ended
			if !drawn {
				t.Errorf("it ended without having drawn anything:\n%s", seen)
			}
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// touching is every system call by which a file could be opened or changed, a
// lock be taken or a process be disturbed.
const touching = "open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,truncate,ftruncate," +
	"mkdir,mkdirat,rmdir,mknod,mknodat,chmod,fchmod,fchmodat,chown,fchown,fchownat,utimensat,setxattr,fallocate,flock,fcntl," +
	"kill,tkill,pidfd_send_signal,ptrace,process_vm_writev,mount,umount2,execve"

// checkTrace reads what strace saw. own are the files that may be written.
func checkTrace(t *testing.T, log string, own ...string) {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	opens := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if strings.Contains(line, "open") {
			opens++
		}
		if why := harm(line, own...); why != "" {
			t.Errorf("%s: %s", why, line)
		}
	}
	if opens == 0 {
		t.Error("strace saw nothing: this test cannot fail")
	}
}

// harm says what is wrong with a system call, if anything is.
func harm(line string, own ...string) string {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(line, w) {
				return true
			}
		}
		return false
	}
	// By its name, or as what a descriptor turned out to be.
	if has(`"/dev/tenstorrent/`, `</dev/tenstorrent/`) {
		return "a device node was touched"
	}
	if has(" resumed>") { // the end of a call whose arguments stood in an earlier line
		return ""
	}
	if has("flock(", "F_SETLK", "F_OFD_SETLK") && !has(own...) {
		return "a file was locked"
	}
	if has(" kill(", " tkill(", "pidfd_send_signal(", "ptrace(", "process_vm_writev(") {
		return "a process was disturbed"
	}
	call := line
	if i := strings.IndexByte(line, '('); i > 0 {
		call = line[:i]
	}
	writes := has("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND")
	for _, w := range []string{
		"creat", "unlink", "rename", "link", "truncate", "mkdir", "rmdir", "mknod", "chmod", "chown", "utimensat", "setxattr", "fallocate", "mount",
	} {
		writes = writes || strings.Contains(call, w) && !strings.Contains(call, "readlink")
	}
	if writes && !has(own...) && !has(`"/dev/null"`, `"/dev/tty"`, `fcntl(`) {
		return "something was opened for writing, or changed"
	}
	return ""
}

// TestHarm: the judge of TestHarmless would see what it is there for.
func TestHarm(t *testing.T) {
	for line, bad := range map[string]bool{
		`12 openat(AT_FDCWD</>, "/dev/tenstorrent/0", O_RDONLY|O_APPEND) = 3</dev/tenstorrent/0>`:            true,
		`12 openat(7</proc/4/fd>, "5", O_RDONLY) = 8</dev/tenstorrent/1<char 246:1>>`:                        true,
		`12 openat(AT_FDCWD</>, "/sys/class/tenstorrent", O_RDONLY|O_DIRECTORY|O_CLOEXEC) = 3</sys/class/x>`: false,
		`12 openat(AT_FDCWD</>, "/dev/shm/tt_device_1_memory", O_RDWR|O_CLOEXEC) = 3</dev/shm/x>`:            true,
		`12 openat(AT_FDCWD</>, "/dev/shm/tt_device_1_memory", O_RDONLY|O_CLOEXEC) = 3</dev/shm/x>`:          false,
		`12 openat(AT_FDCWD</>, "/tmp/own/out", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0666) = 3</tmp/own/out>`: false,
		`12 unlinkat(AT_FDCWD</>, "/dev/shm/tt_device_1_memory", 0) = 0`:                                     true,
		`12 flock(3</dev/shm/TT_UMD_LOCK>, LOCK_EX) = 0`:                                                     true,
		`12 flock(3</tmp/own/out/lock>, LOCK_EX|LOCK_NB) = 0`:                                                false,
		`12 fcntl(3</dev/shm/x>, F_SETLK, {l_type=F_RDLCK}) = 0`:                                             true,
		`12 <... fcntl resumed>) = 0x8002 (flags O_RDWR|O_LARGEFILE)`:                                        false,
		`12 <... openat resumed>) = 8</dev/tenstorrent/1<char 246:1>>`:                                       true,
		`12 openat(AT_FDCWD</>, "/dev/shm/tt_device_1_memory", O_RDWR|O_CLOEXEC <unfinished ...>`:            true,
		`12 fcntl(0</dev/null>, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)`:                                false,
		`12 kill(4711, SIGTERM) = 0`:                                                       true,
		`12 ftruncate(3</dev/shm/x>, 0) = 0`:                                               true,
		`12 --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=12, si_uid=0} ---`:       false,
		`12 execve("/tmp/bin/ttmon", ["/tmp/bin/ttmon", "smi"], 0x7ffe /* 20 vars */) = 0`: false,
	} {
		t.Run(fmt.Sprintf("%.90s", line), func(t *testing.T) {
			if why := harm(line, "/tmp/own/out"); (why != "") != bad {
				t.Errorf("%s: %q", line, why)
			}
		})
	}
}
