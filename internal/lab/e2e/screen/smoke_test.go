package screen

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/view/tui/picture"
)

var (
	bin  string // where the binaries are
	tree string // a host of plain files
)

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{Limit: 45 * time.Minute})
	os.Exit(func() int {
		var err error
		if bin, err = programs.Build(false, "ttmon", "ttmon-sim", "ttmond", "ttmon-server"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(bin)
		tree = filepath.Join(bin, "host")
		if err := os.Symlink("ttmon", filepath.Join(bin, "tt-nvtop")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if out, err := exec.Command(bin+"/ttmon-sim", "--boards", "n300,p150a", "--root", tree).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "making a host: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// pane is a terminal of its own with a shell in it.
type pane struct {
	t      *testing.T
	socket string
}

// open starts a shell of 100 by 30 in tmux.
func open(t *testing.T) *pane {
	t.Helper()
	programs.Depend(t)
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: the real terminal is not tested")
	}
	p := &pane{t, filepath.Join(t.TempDir(), "tmux")}
	home := t.TempDir()
	p.tmux("-f", "/dev/null", "new-session", "-d", "-c", home, "-x", "100", "-y", "30",
		"env", "-i", "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "TERM=screen-256color", "LANG=C.UTF-8", "TTMON_TIMEOUT=20s", "PS1=ready> ", "sh", "-i")
	t.Cleanup(func() { exec.Command("tmux", "-S", p.socket, "kill-server").Run() })
	p.wait("ready>")
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *pane) keys(keys ...string) { p.tmux(append([]string{"send-keys"}, keys...)...) }
func (p *pane) typ(text string)     { p.tmux("send-keys", "-l", text); p.keys("Enter") }
func (p *pane) screen() string      { return p.tmux("capture-pane", "-p") }
func (p *pane) ask(format string) string {
	return strings.TrimSpace(p.tmux("display-message", "-p", format))
}

// until waits for something to be true.
func (p *pane) until(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	p.t.Fatalf("waiting for %s; the screen is\n%s", what, p.screen())
}

func (p *pane) wait(text string) {
	p.t.Helper()
	p.until(strconv.Quote(text), func() bool { return strings.Contains(p.screen(), text) })
}

// top starts ttmon top on the host of plain files and returns its pid.
func (p *pane) top(flags string) int {
	p.t.Helper()
	p.typ("sh -c 'echo $$ > pid; exec ttmon --root " + tree + " top " + flags + "'")
	p.wait("F1Help")
	p.wait("n300")
	return p.pid()
}

func (p *pane) pid() int {
	p.t.Helper()
	home := strings.TrimSpace(p.tmux("display-message", "-p", "#{pane_current_path}"))
	b, err := os.ReadFile(filepath.Join(home, "pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// restored checks that the terminal is as a shell wants it: main screen,
// cursor shown, mouse off, and lines edited by the terminal.
func (p *pane) restored() {
	p.t.Helper()
	const want = "alternate 0 cursor 1 mouse 0 keypad 0"
	p.until("the terminal to be restored", func() bool {
		return p.ask("alternate #{alternate_on} cursor #{cursor_flag} mouse #{mouse_any_flag} keypad #{keypad_flag}") == want
	})
	p.typ("echo sane=$(stty -a | tr ' ' '\\n' | grep -cx -e icanon -e echo -e isig -e icrnl -e opost)")
	p.wait("sane=5")
	p.typ("clear")
	p.until("an empty screen", func() bool { return !strings.Contains(p.screen(), "sane=5") })
}

// drawn checks that the program has the terminal.
func (p *pane) drawn() {
	p.t.Helper()
	p.until("the screen of ttmon", func() bool {
		return p.ask("#{alternate_on} #{mouse_any_flag}") == "1 1" && strings.Contains(p.screen(), "F1Help")
	})
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func (p *pane) ended(pid int) {
	p.t.Helper()
	p.until("the program to end", func() bool { return gone(pid) })
}

func TestQuit(t *testing.T) {
	for _, key := range []string{"q", "F10", "C-c"} {
		p := open(t)
		pid := p.top("")
		p.drawn()
		p.keys("Escape") // says what quits, and does not
		p.wait("q quits")
		p.keys(key)
		p.ended(pid)
		p.restored()
		p.typ("echo code=$?")
	}
}

func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		p := open(t)
		pid := p.top("")
		p.drawn()
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
		p.ended(pid)
		p.restored()
	}
}

func TestSuspendAndResume(t *testing.T) {
	p := open(t)
	pid := p.top("")
	p.drawn()
	p.keys("C-z")
	p.until("the shell", func() bool { return p.ask("#{alternate_on}") == "0" })
	p.restored()
	p.typ("fg")
	p.drawn()
	p.wait("n300")
	// Another process stops it: the same.
	if err := syscall.Kill(pid, syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	p.until("the shell", func() bool { return p.ask("#{alternate_on}") == "0" })
	p.restored()
	p.typ("fg")
	p.drawn()
	p.keys("q")
	p.ended(pid)
	p.restored()
}

func TestResize(t *testing.T) {
	p := open(t)
	pid := p.top("")
	for _, size := range [][2]int{{80, 24}, {200, 50}, {40, 10}, {7, 3}, {120, 40}} {
		p.tmux("resize-window", "-x", strconv.Itoa(size[0]), "-y", strconv.Itoa(size[1]))
		p.until(fmt.Sprintf("the footer in row %d", size[1]), func() bool {
			rows := strings.Split(strings.TrimSuffix(p.screen(), "\n"), "\n")
			return len(rows) == size[1] && strings.Contains(rows[size[1]-1], "F1")
		})
	}
	p.wait("Power W") // charts have room again
	p.keys("q")
	p.ended(pid)
	p.restored()
}

// When the terminal goes away, the program does, even one that ignores SIGHUP.
func TestTerminalLoss(t *testing.T) {
	for _, trap := range []string{"", "trap '' HUP; "} {
		p := open(t)
		p.typ("sh -c \"" + trap + "echo \\$\\$ > pid; exec ttmon --root " + tree + " top\"")
		p.wait("F1Help")
		pid := p.pid()
		p.tmux("kill-server")
		for end := time.Now().Add(5 * time.Minute); !gone(pid); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				syscall.Kill(pid, syscall.SIGKILL)
				t.Fatalf("with %q it lives on without a terminal", trap)
			}
		}
	}
}

func TestKeysAndMouseOfARealTerminal(t *testing.T) {
	p := open(t)
	pid := p.top("")
	p.keys("F1")
	p.wait("any other key closes")
	p.keys("q")
	p.keys("F2")
	p.wait("Tab section")
	p.keys("Right", "F12")
	p.wait("saved to")
	p.keys("q")
	p.keys("/")
	p.tmux("send-keys", "-l", "user=")
	p.wait("a value is missing after user=")
	p.keys("Escape") // alone: followed by other keys at once it would mean Alt
	p.wait("F1Help")
	p.keys("Tab", "Enter")
	p.wait("Heartbeat Rate")
	p.keys("q")
	p.keys("m")
	p.wait("device 0 n300 L")
	p.keys("q")
	p.wait("F2Setup")
	// A press on "Setup" in the footer, as the terminal sends it.
	row := 30
	p.tmux("send-keys", "-l", fmt.Sprintf("\x1b[<0;%d;%dM\x1b[<0;%d;%dm", 10, row, 10, row))
	p.wait("Tab section")
	p.keys("q")
	p.keys("q")
	p.ended(pid)
	p.restored()
	p.typ("echo found=$(grep -c '^theme = \"dark\"' .config/ttmon/config.toml)")
	p.wait("found=1")
}

func TestMem(t *testing.T) {
	p := open(t)
	p.typ("ttmon --root " + tree + " mem")
	p.wait("0 n300 L")
	p.keys("Enter")
	p.wait("who holds DRAM")
	p.keys("q", "q")
	p.wait("ready>")
	p.restored()
}

// Without a terminal there is no screen, and a hint what to do instead.
func TestWithoutTerminal(t *testing.T) {
	run := func(name string, args ...string) (string, int) {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := run("ttmon", "--root", tree, "top"); code != 2 || !strings.Contains(out, "needs a terminal") {
		t.Errorf("top: %d %s", code, out)
	}
	if out, code := run("ttmon", "--root", tree, "mem", "--once"); code != 0 || !strings.Contains(out, "device 0 n300 L") || strings.Contains(out, "\x1b") {
		t.Errorf("mem --once: %d %s", code, out)
	}
	if out, code := run("ttmon", "--root", tree, "mem", "--once", "-d", "7"); code != 2 || !strings.Contains(out, `no device "7"`) {
		t.Errorf("mem -d 7: %d %s", code, out)
	}
	if out, code := run("tt-nvtop", "--root", tree, "-s", "-C", "-i", "-E", "30"); code != 0 || !strings.Contains(out, `"device_name": "Wormhole n300"`) {
		t.Errorf("tt-nvtop -s: %d %s", code, out)
	}
	if out, code := run("ttmon", "--root", tree, "top", "--delay", "0"); code != 2 || !strings.Contains(out, "tenths of a second") {
		t.Errorf("top -d 0: %d %s", code, out)
	}
	broken := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(broken, []byte("[display]\ntheem = \"dark\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := run("ttmon", "--root", tree, "top", "-c", broken); code != 2 || !strings.Contains(out, broken+": line 2: unknown key display.theem") {
		t.Errorf("broken configuration: %d %s", code, out)
	}
	if out, code := run("ttmon", "--root", tree, "top", "-c", "/no/such/file"); code != 2 || !strings.Contains(out, "/no/such/file") {
		t.Errorf("missing configuration: %d %s", code, out)
	}
}

// Another host is shown through ssh, and the screen survives its loss. The
// ssh here is a script: what is tested is what we do with it.
func TestSSH(t *testing.T) {
	p := open(t)
	dir := t.TempDir()
	script := "#!/bin/sh\nfor last; do :; done\necho \"$@\" >> " + dir + "/calls\n[ -e " + dir + "/down ] && { echo 'ssh: connect to host lab-4 port 22: Connection refused' >&2; exit 255; }\n" +
		"echo $$ > " + dir + "/pid\nexec sh -c \"exec $(echo \"$last\" | sed 's#^ttmon#ttmon --root " + tree + "#')\"\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p.typ("PATH=" + dir + ":$PATH ttmon top --interval 200ms --ssh lab-4")
	p.wait("ssh lab-4")
	p.wait("n300")
	if strings.Contains(p.screen(), "Kill") {
		t.Error("it offers to kill processes of another host")
	}
	if err := os.WriteFile(filepath.Join(dir, "down"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	remote, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	if err := syscall.Kill(remote, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.wait("Connection refused")
	p.wait("NO DATA")
	p.wait("n300") // what was seen last stays
	if err := os.Remove(filepath.Join(dir, "down")); err != nil {
		t.Fatal(err)
	}
	p.wait("the source is back")
	p.keys("q")
	p.wait("ready>")
	p.restored()
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	first, later, _ := strings.Cut(string(calls), "\n")
	if strings.Contains(first, "BatchMode") || !strings.Contains(later, "BatchMode=yes") {
		t.Errorf("ssh may ask for a password only the first time:\n%s", calls)
	}
}

// A process of a simulated host is found, selected, and ended after asking.
func TestKill(t *testing.T) {
	if out, err := exec.Command(bin+"/ttmon-sim", "--boards", "p150a", "--", "true").CombinedOutput(); err != nil {
		t.Skipf("no simulated host here (it takes root, or user namespaces and /dev/fuse): %v: %s", err, out)
	}
	p := open(t)
	p.typ("ttmon-sim --boards p150a --procs name=victim --procs name=bystander -- ttmon top --interval 200ms")
	p.wait("victim")
	p.wait("SIMULATED")
	p.keys("/")
	p.tmux("send-keys", "-l", "cmd~victim")
	p.wait("1 of 2")
	p.keys("Enter", "F9")
	p.wait("Enter chooses")
	p.keys("9", "Enter")
	p.wait("Send SIGKILL?")
	p.keys("n")
	p.wait("Enter chooses")
	p.keys("Enter", "y")
	p.wait("SIGKILL sent to")
	p.wait("None of 1 process matches")
	p.keys("Escape")
	p.wait("bystander")
	p.keys("q")
	p.wait("ready>")
	p.restored()
}

// TestCapture: what a real terminal shows is read with its colours, as films do.
func TestCapture(t *testing.T) {
	p := open(t)
	p.top("")
	s := picture.Capture(p.tmux("capture-pane", "-e", "-p"), 100, 30, 0xd5dae2, 0x101418)
	text, looks := "", map[picture.Style]bool{}
	for _, c := range s.Cells {
		text += string(max(c.Rune, ' '))
		looks[c.Style] = true
	}
	if !strings.Contains(text, "n300") || !strings.Contains(text, "F1Help") || len(looks) < 4 {
		t.Errorf("%d looks:\n%s", len(looks), text)
	}
}

// TestKeepsRuns: while ttmon top is open, and no ttmon-server runs, the programs at
// devices are kept as runs, which ttmon runs lists.
func TestKeepsRuns(t *testing.T) {
	startSim(t, sim.Options{Boards: "n300"}).Close() // only whether there can be one
	p := open(t)
	home := p.ask("#{pane_current_path}")
	p.typ("ttmon-sim --boards n300,p150a -- sh -i")
	p.typ("ttmon runs; echo code=$?")
	p.wait("code=3")
	p.typ("pid=$(ttmon-sim ctl run name=train,devices=1,kind=metal,dram=2G)")
	p.typ("(while [ ! -e stop ]; do sleep 0.1; done; ttmon-sim ctl kill $pid) & ttmon top --direct")
	p.drawn()
	p.wait("train")
	if err := os.WriteFile(filepath.Join(home, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.until("the program to exit", func() bool { return !strings.Contains(p.screen(), "train") })
	p.keys("q")
	p.until("the shell", func() bool { return p.ask("#{alternate_on}") == "0" })
	p.typ("clear; ttmon runs --json >runs.json 2>note; echo code=$?")
	p.wait("code=0")
	var a runs.Answer
	if b, err := os.ReadFile(filepath.Join(home, "runs.json")); err != nil || json.Unmarshal(b, &a) != nil || len(a.Runs) != 1 {
		t.Fatalf("%v: %s", err, b)
	}
	r := a.Runs[0]
	if r.Name != "train" || r.Pools["dram"].Peak != 2<<30 || r.End.Kind == runs.Running || len(r.Devices) != 1 || r.Devices[0].Index != 1 {
		t.Errorf("%+v", r)
	}
	if note, err := os.ReadFile(filepath.Join(home, "note")); err != nil || !strings.Contains(string(note), "ttmon top has seen") {
		t.Errorf("%q, %v", note, err)
	}
	state := filepath.Join(home, ".local", "state", "ttmon")
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	p.typ("clear; TTMON_TOP_RUNS=false ttmon top --direct")
	p.drawn()
	p.wait("n300")
	p.keys("q")
	p.until("the shell", func() bool { return p.ask("#{alternate_on}") == "0" })
	if _, err := os.Stat(state); err == nil {
		t.Error("runs were kept with top.runs = false")
	}
}
