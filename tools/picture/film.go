package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/view/tui/picture"
)

// A film is recorded from a real terminal (tmux) on a simulated host, by a script:
//
//	host BOARDS SIZE        the boards of the host, columns and rows of the terminal
//	run SPEC                a program that uses boards, as ttmon-sim ctl run takes it
//	type COMMAND            typed letter by letter, then Enter
//	until TEXT              waits until the screen shows it
//	show SECONDS            records what happens meanwhile
//	wait SECONDS            lets time pass that is not in the film
//	key NAME                a key, as tmux names it
//	ctl COMMAND             tells the simulated host something
//
// Only show and type add to the film: show plays as fast as it happened, type at a
// fixed time per letter.
type step struct{ verb, rest string }

const (
	filmFG, filmBG = 0xd5dae2, 0x101418
	letterTime     = 60 * time.Millisecond
	frameTime      = 200 * time.Millisecond
	untilLimit     = 2 * time.Minute
)

func readFilm(name string) (steps []step, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		steps = append(steps, step{verb, rest})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(steps) == 0 || steps[0].verb != "host" {
		return nil, fmt.Errorf("%s does not begin with a host", name)
	}
	return steps, nil
}

// termSize is the size of a terminal, in cells.
type termSize struct{ w, h int }

func parseHost(s step) (boards string, size termSize, err error) {
	boards, text, _ := strings.Cut(s.rest, " ")
	if _, err := fmt.Sscanf(text, "%dx%d", &size.w, &size.h); err != nil || size.w < 20 || size.h < 5 {
		return "", size, fmt.Errorf("host: invalid terminal size %q: at least 20x5, such as 100x30", text)
	}
	return boards, size, nil
}

func knownVerb(verb string) bool {
	return slices.Contains([]string{"run", "type", "until", "show", "wait", "key", "ctl"}, verb)
}

// film runs itself again inside a simulated host, and records there. $TTMON_FILM
// distinguishes the two.
func film(script, bin, output string) error {
	steps, err := readFilm(script)
	if err != nil {
		return err
	}
	boards, size, err := parseHost(steps[0])
	if err != nil {
		return err
	}
	if os.Getenv("TTMON_FILM") == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.Command(filepath.Join(bin, "ttmon-sim"), "--boards", boards, "--", self, "-film", script, "-bin", bin, "-o", output)
		cmd.Env = append(os.Environ(), "TTMON_FILM=inside")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	}
	c, err := newCamera(bin, size)
	if err != nil {
		return err
	}
	defer c.close()
	for _, s := range steps[1:] {
		if err := c.do(s); err != nil {
			return fmt.Errorf("%s %s: %w", s.verb, s.rest, err)
		}
	}
	return os.WriteFile(output, picture.Film(c.frames), 0o644)
}

// camera records a terminal, with the daemons that the programs in it ask.
type camera struct {
	bin, dir string
	size     termSize
	daemons  []*exec.Cmd
	frames   []picture.Frame
	last     string // what the last frame shows
}

func newCamera(bin string, size termSize) (*camera, error) {
	dir, err := os.MkdirTemp("", "film")
	if err != nil {
		return nil, err
	}
	c := &camera{bin: bin, dir: dir, size: size}
	if err := c.start(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// start starts the daemons and the terminal.
func (c *camera) start() error {
	socket := filepath.Join(c.dir, "ttmond.sock")
	os.Setenv("TTMON_SOCKET", socket)
	os.Setenv("PATH", c.bin+":"+os.Getenv("PATH"))
	for _, d := range []*exec.Cmd{
		exec.Command("ttmond", "--socket", socket, "--alloc-socket", filepath.Join(c.dir, "alloc.sock"), "--state-dir", filepath.Join(c.dir, "state")),
		exec.Command("ttmon-server", "--daemon", socket, "--socket", filepath.Join(c.dir, "server.sock"), "--state-dir", filepath.Join(c.dir, "server"), "--listen", "off"),
	} {
		if err := d.Start(); err != nil {
			return err
		}
		c.daemons = append(c.daemons, d)
	}
	_, err := c.tmux("-f", "/dev/null", "new-session", "-d", "-c", c.dir, "-x", strconv.Itoa(c.size.w), "-y", strconv.Itoa(c.size.h),
		"env", "-i", "PATH="+os.Getenv("PATH"), "HOME="+c.dir, "TTMON_SOCKET="+socket, "TERM=screen-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "PS1=$ ", "sh", "-i")
	return err
}

func (c *camera) close() {
	_, _ = c.tmux("kill-server")
	for _, d := range c.daemons {
		_ = d.Process.Kill()
		_ = d.Wait()
	}
	os.RemoveAll(c.dir)
}

func (c *camera) tmux(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-S", filepath.Join(c.dir, "tmux")}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

func (c *camera) do(s step) error {
	switch s.verb {
	case "run":
		return exec.Command("ttmon-sim", "ctl", "run", s.rest).Run()
	case "ctl":
		return exec.Command("ttmon-sim", append([]string{"ctl"}, strings.Fields(s.rest)...)...).Run()
	case "type":
		return c.typeLine(s.rest)
	case "until":
		return c.until(s.rest)
	case "key":
		_, err := c.tmux("send-keys", s.rest)
		return err
	case "show", "wait":
		seconds, err := strconv.ParseFloat(s.rest, 64)
		if err != nil {
			return err
		}
		d := time.Duration(seconds * float64(time.Second))
		if s.verb == "wait" {
			time.Sleep(d)
			return nil
		}
		return c.show(d)
	}
	return errors.New("unknown step")
}

// shoot records the screen for d. An unchanged screen extends the last frame.
func (c *camera) shoot(d time.Duration) error {
	text, err := c.tmux("capture-pane", "-e", "-p")
	if err != nil {
		return err
	}
	if text != c.last || len(c.frames) == 0 {
		c.last = text
		c.frames = append(c.frames, picture.Frame{Screen: picture.Capture(text, c.size.w, c.size.h, filmFG, filmBG)})
	}
	c.frames[len(c.frames)-1].For += d
	return nil
}

// typeLine types a line of ASCII, as a person would.
func (c *camera) typeLine(line string) error {
	for i := range line {
		if _, err := c.tmux("send-keys", "-l", line[i:i+1]); err != nil {
			return err
		}
		if err := c.until(line[:i+1]); err != nil {
			return err
		}
		if err := c.shoot(letterTime); err != nil {
			return err
		}
	}
	if err := c.shoot(5 * letterTime); err != nil {
		return err
	}
	_, err := c.tmux("send-keys", "Enter")
	return err
}

func (c *camera) show(d time.Duration) error {
	for begin, at := time.Now(), time.Duration(0); at < d; {
		time.Sleep(frameTime)
		next := min(time.Since(begin), d)
		if err := c.shoot(next - at); err != nil {
			return err
		}
		at = next
	}
	return nil
}

func (c *camera) until(want string) error {
	for end := time.Now().Add(untilLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text, err := c.tmux("capture-pane", "-p")
		if err != nil {
			return err
		}
		if slices.ContainsFunc(strings.Split(text, "\n"), func(l string) bool { return strings.Contains(l+" ", want) }) {
			return nil
		}
	}
	return fmt.Errorf("not on the screen after %v", untilLimit)
}
