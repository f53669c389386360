package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ttmon/ttmon/internal/base/exit"
)

// terminal runs the program on a pseudo terminal and keeps what it prints.
type terminal struct {
	t   *testing.T
	cmd *exec.Cmd
	pty *os.File

	mu      sync.Mutex
	got     bytes.Buffer
	updates chan struct{}
}

func onTerminal(t *testing.T, columns, rows uint16, env []string, args ...string) *terminal {
	t.Helper()
	dir := t.TempDir()
	if err := hosts(dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append([]string{"TERM=xterm-256color", "LANG=C.UTF-8", "LC_ALL=", "NO_COLOR=", "TZ=UTC"}, env...)...)
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	tt := &terminal{t: t, cmd: cmd, pty: f, updates: make(chan struct{}, 1)}
	go tt.read()
	t.Cleanup(func() {
		cmd.Process.Kill()
		f.Close()
	})
	return tt
}

func (tt *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := tt.pty.Read(buf)
		tt.mu.Lock()
		tt.got.Write(buf[:n])
		tt.mu.Unlock()
		select {
		case tt.updates <- struct{}{}:
		default:
		}
		if err != nil {
			close(tt.updates)
			return
		}
	}
}

func (tt *terminal) text() string {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return tt.got.String()
}

// until waits until the output is as wanted.
func (tt *terminal) until(what string, ok func(string) bool) string {
	tt.t.Helper()
	deadline := time.After(time.Minute)
	for !ok(tt.text()) {
		select {
		case _, open := <-tt.updates:
			if !open && !ok(tt.text()) {
				tt.t.Fatalf("it ended without %s:\n%q", what, tt.text())
			}
		case <-deadline:
			tt.t.Fatalf("no %s:\n%q", what, tt.text())
		}
	}
	return tt.text()
}

func (tt *terminal) wait() int {
	tt.t.Helper()
	err := tt.cmd.Wait()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	if err != nil {
		tt.t.Fatal(err)
	}
	return 0
}

func TestWatchDrawsInPlace(t *testing.T) {
	tt := onTerminal(t, 100, 30, nil, "--root", "four", "smi", "-r", "50")
	out := tt.until("third screen", func(s string) bool { return strings.Count(s, "\x1b[H") >= 3 })
	if !strings.HasPrefix(out, "\x1b[?25l\x1b[2J") {
		t.Errorf("it begins with %q", out[:min(40, len(out))])
	}
	if n := strings.Count(out, "\x1b[2J"); n != 1 {
		t.Errorf("the screen is cleared %d times: it flickers", n)
	}
	frames := strings.Split(out, "\x1b[H")
	for _, line := range strings.Split(frames[1], "\r\n") {
		if line != "" && !strings.HasSuffix(line, "\x1b[K") && !strings.HasPrefix(line, "\x1b[J") {
			t.Errorf("a line that leaves old text behind its end: %q", line)
		}
	}
	if !strings.Contains(frames[1], "\x1b[32m~ok") {
		t.Error("no colour on a terminal")
	}

	// A terminal that changes its size is drawn again.
	if err := pty.Setsize(tt.pty, &pty.Winsize{Cols: 60, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	narrow := strings.Repeat("─", 60) + "\x1b[0m\x1b[K"
	tt.until("narrow screen", func(s string) bool { return strings.Contains(s, "\n\x1b[2m"+narrow) })

	// A low one is not scrolled.
	if err := pty.Setsize(tt.pty, &pty.Winsize{Cols: 60, Rows: 8}); err != nil {
		t.Fatal(err)
	}
	tt.until("word about what does not fit", func(s string) bool { return strings.Contains(s, " more lines need a taller terminal") })

	tt.pty.Write([]byte{3}) // Ctrl-C
	if code := tt.wait(); code != 0 {
		t.Errorf("interrupted it exits with %d", code)
	}
	tt.until("cursor", func(s string) bool { return strings.HasSuffix(s, "\x1b[?25h") })
}

func TestNoColor(t *testing.T) {
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		tt := onTerminal(t, 100, 30, []string{env}, "--root", "one", "smi")
		if code := tt.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		out := tt.until("table", func(s string) bool { return strings.Contains(s, "no process uses a device") })
		if strings.Contains(out, "\x1b") {
			t.Errorf("%s, and yet: %q", env, out)
		}
	}
}

// A terminal that can only print gets one table below the other.
func TestDumbTerminal(t *testing.T) {
	tt := onTerminal(t, 100, 30, []string{"TERM=dumb"}, "--root", "one", "smi", "-lms", "50")
	out := tt.until("third table", func(s string) bool { return strings.Count(s, "driver 2.10.1") >= 3 })
	if strings.Contains(out, "\x1b") {
		t.Errorf("it gets %q", out)
	}
}

// A command that has nothing to show leaves the terminal as it was.
func TestFailedWatchClearsNothing(t *testing.T) {
	for _, args := range [][]string{{"--root", "one", "smi", "-w", "-i", "7"}, {"--root", "nodriver", "smi", "-w"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			tt := onTerminal(t, 100, 30, nil, args...)
			if code := tt.wait(); code == 0 {
				t.Error("exit code 0")
			}
			out := tt.until("word about it", func(s string) bool { return strings.Contains(s, "ttmon: ") })
			if strings.Contains(out, "\x1b") {
				t.Errorf("%q", out)
			}
		})
	}
}

// A terminal that is said not to know UTF-8 gets none.
func TestASCIILocale(t *testing.T) {
	tt := onTerminal(t, 100, 30, []string{"LC_ALL=C"}, "--root", "one", "smi")
	tt.wait()
	out := tt.until("table", func(s string) bool { return strings.Contains(s, "no process uses a device") })
	for _, b := range []byte(out) {
		if b >= 0x80 {
			t.Fatalf("byte %#x in %q", b, out)
		}
	}
}

func TestJSONForPeople(t *testing.T) {
	tt := onTerminal(t, 100, 30, nil, "--root", "one", "smi", "--json")
	tt.wait()
	tt.until("indented JSON", func(s string) bool { return strings.Contains(s, "{\r\n  \"schema\": \"ttmon.snapshot/1\",\r\n") })
}

func TestInterruptedLoopEndsWell(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		for _, args := range [][]string{{"smi", "-l", "30"}, {"dmon", "--interval", "30"}, {"pmon"}, {"smi", "--json", "-lms", "50"}} {
			t.Run(strings.Join(args, " ")+" "+sig.String(), func(t *testing.T) {
				dir := t.TempDir()
				if err := hosts(dir); err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(binary(t), append([]string{"--root", "hung"}, args...)...)
				cmd.Dir = dir
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if _, err := out.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				cmd.Process.Signal(sig)
				io.Copy(io.Discard, out)
				if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
					t.Errorf("%v ended by %v: %v, %s", args, sig, err, stderr.String())
				}
			})
		}
	}
}

// A reader that goes away ends it without a word.
func TestClosedPipe(t *testing.T) {
	dir := t.TempDir()
	if err := hosts(dir); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "--root", "one", "smi", "--json", "-lms", "10")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	r.Read(make([]byte, 1))
	r.Close()
	err = cmd.Wait()
	e, ok := errors.AsType[*exec.ExitError](err)
	if !ok || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE || stderr.Len() > 0 {
		t.Errorf("%v, %q", err, stderr.String())
	}
}

// A full disk is an error that is said.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("needs /dev/full: %v", err)
	}
	defer full.Close()
	dir := t.TempDir()
	if err := hosts(dir); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"smi"}, {"smi", "--json", "-lms", "10"}, {"dmon"}, {"smi", "-s", "-f", "/dev/full"}, {"version"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			cmd := exec.Command(binary(t), append([]string{"--root", "one"}, args...)...)
			cmd.Dir = dir
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = full, &stderr
			err := cmd.Run()
			e, ok := errors.AsType[*exec.ExitError](err)
			if !ok || e.ExitCode() != exit.Internal || !strings.HasSuffix(stderr.String(), "no space left on device\n") || strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("%v, %q", err, stderr.String())
			}
		})
	}
}

// A file that may not be written is exit code 4.
func TestDeniedFile(t *testing.T) {
	dir := t.TempDir()
	if err := hosts(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "closed"), 0o500); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "--root", "one", "smi", "-f", "closed/x")
	if os.Getuid() == 0 { // who may write everywhere, but for this
		cmd = exec.Command("setpriv", append([]string{"--bounding-set=-dac_override"}, cmd.Args...)...)
	}
	cmd.Dir = dir
	if e, ok := errors.AsType[*exec.ExitError](cmd.Run()); !ok || e.ExitCode() != exit.Denied {
		t.Errorf("%v, want exit code %d", e, exit.Denied)
	}
}

// On a terminal ttmon ops is a screen; with --count it prints, there too.
func TestOpsOnTerminal(t *testing.T) {
	tt := onTerminal(t, 80, 24, nil, "--root", "four", "ops")
	tt.until("footer", func(s string) bool { return strings.Contains(s, "Freeze") && strings.Contains(s, "Share") })
	if _, err := tt.pty.Write([]byte(" ")); err != nil {
		t.Fatal(err)
	}
	tt.until("frozen table", func(s string) bool { return strings.Contains(s, "FROZEN") })
	if _, err := tt.pty.Write([]byte("qq")); err != nil {
		t.Fatal(err)
	}
	if code := tt.wait(); code != 0 {
		t.Errorf("it ended with %d:\n%q", code, tt.text())
	}
	tt = onTerminal(t, 80, 24, nil, "--root", "four", "ops", "--interval", "0.1", "-c", "1")
	if out := tt.until("table", func(s string) bool { return strings.Contains(s, "busy") }); strings.Contains(out, "Freeze") {
		t.Errorf("--count opens the screen:\n%q", out)
	}
}
