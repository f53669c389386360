package metal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// A Go program cannot fork. The child is started from scratch instead, and maps the
// same files over descriptors that it inherits: from outside, and to its
// region, it is what fork would have made. It ends when its parent does, and
// is killed by the parent's death as little as a forked one.

// forkee is a forked child, with the pipe that ends it.
type forkee struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// inherited is what a child receives about one of its parent's chips.
type inherited struct {
	ID       uint64
	DeviceID uint32
	Layout   uint32
}

func (w *Workload) fork(commands string) (pid int, err error) {
	cmd := exec.Command("/proc/self/exe", "--child")
	cmd.Args[0] = childName
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var chips []inherited
	for id, c := range w.chips {
		if c.writer == nil {
			continue
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.writer.mapped().file)
		chips = append(chips, inherited{ID: id, DeviceID: deviceOf(c.writer), Layout: w.layout})
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, w.nodes...)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	w.forkees = append(w.forkees, &forkee{cmd: cmd, in: in})
	if err := json.NewEncoder(in).Encode(chips); err != nil {
		return 0, err
	}
	fmt.Fprintln(in, commands)
	answer, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the child does not answer: %w", err)
	}
	if answer != "ok\n" {
		return 0, errors.New(strings.TrimSpace(answer))
	}
	return cmd.Process.Pid, nil
}

// childName is the name under which a program that calls Reexec is a child.
const childName = "metal-child"

// Reexec must be called first thing in the main of a program that starts
// workloads or whose workloads fork, and in TestMain: if this process was
// started to be such a child, it is that and never returns.
func Reexec() {
	if os.Args[0] == childName {
		os.Exit(Main(os.Args[1:]))
	}
}

func deviceOf(w writer) uint32 {
	switch w := w.(type) {
	case *v3:
		return w.deviceID
	case *v4:
		return w.deviceID
	}
	panic("BUG: unknown writer")
}

// runChild is the child's life: take over, obey, stay until the parent ends.
func (w *Workload) runChild(in io.Reader) error {
	// Not buffered past the first lines: nothing else is sent.
	lines := bufio.NewReader(in)
	head, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var chips []inherited
	if err := json.Unmarshal(head, &chips); err != nil {
		return err
	}
	for i, c := range chips {
		r, err := mapFile(os.NewFile(uintptr(3+i), fmt.Sprintf("chip %d", c.ID)))
		if err != nil {
			return err
		}
		w.layout = c.Layout
		var child writer = &v3{region: r, deviceID: c.DeviceID}
		if c.Layout == 4 {
			child = &v4{region: r, deviceID: c.DeviceID}
		}
		w.chips[c.ID] = &chip{writer: child}
	}
	commands, err := lines.ReadString('\n')
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(commands, ",", "\n"), "\n") {
		if _, err := w.Do(line); errors.Is(err, errEnd) {
			w.CloseAll()
		} else if err != nil {
			fmt.Println(err)
			return err
		}
	}
	fmt.Println("ok")
	_, _ = io.Copy(io.Discard, lines)
	return errExit
}

// become replaces the program by one that waits for its input to end. Nothing
// is closed that a real exec would not close either.
func become() error {
	return unix.Exec("/bin/cat", []string{"cat"}, os.Environ())
}

// leave ends the process's first thread, as a C program does that calls
// pthread_exit in main.
func leave() {
	left := make(chan bool)
	for {
		go func() {
			runtime.LockOSThread() // for good: the next one gets another thread
			first := unix.Gettid() == os.Getpid()
			left <- first
			if first {
				_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
			}
			select {}
		}()
		if <-left {
			return
		}
	}
}
