package metal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Options say how a workload runs. The zero Options are a layout 3 writer in
// our own namespaces, as our own user.
type Options struct {
	Layout     int    // 0: 3
	Shm        string // directory of the regions; empty: /dev/shm
	Container  bool   // pid and mount namespace of its own
	PID        int    // in the container; 0: 1
	PrivateShm bool   // the container has its own /dev/shm
	UID        int
	Env        []string // added to ours
	// Command makes the command that becomes the workload, for instance
	// ttmon-sim metal in a simulated host. Nil: this program again.
	Command func(args ...string) *exec.Cmd
}

func (o Options) args() []string {
	var args []string
	if o.Layout != 0 {
		args = append(args, "--layout="+strconv.Itoa(o.Layout))
	}
	if o.Shm != "" {
		args = append(args, "--shm="+o.Shm)
	}
	if o.Container {
		args = append(args, "--container")
	}
	if o.PID != 0 {
		args = append(args, "--pid="+strconv.Itoa(o.PID))
	}
	if o.PrivateShm {
		args = append(args, "--private-shm")
	}
	if o.UID != 0 {
		args = append(args, "--uid="+strconv.Itoa(o.UID))
	}
	return args
}

// Process is a workload that runs beside us and does what it is told. The
// program that starts one must call Reexec.
type Process struct {
	PID  int  // of the workload itself, in our pid namespace
	Held Held // what it really holds, as of the last answer

	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

// Start starts a workload.
func Start(o Options) (*Process, error) {
	var cmd *exec.Cmd
	if o.Command != nil {
		cmd = o.Command(o.args()...)
	} else {
		cmd = exec.Command("/proc/self/exe", o.args()...)
		cmd.Args[0] = childName
	}
	// A program built with the race detector would wait a second at its end.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, o.Env...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a workload: %w", err)
	}
	p := &Process{cmd: cmd, in: in, answers: json.NewDecoder(bufio.NewReader(out))}
	if _, err := p.Do(""); err != nil {
		p.End()
		return nil, fmt.Errorf("starting a workload: %w: %s", err, complaints.String())
	}
	if p.PID, err = innermost(cmd.Process.Pid); err != nil {
		p.End()
		return nil, err
	}
	return p, nil
}

// innermost follows the single children of a container's outer processes.
func innermost(pid int) (int, error) {
	for {
		children, err := childrenOf(pid)
		if err != nil {
			return 0, err
		}
		if len(children) == 0 {
			return pid, nil
		}
		pid = children[0]
	}
}

// childrenOf collects over all threads: the kernel lists children by the one
// that made them, and gives them to another one when that ends.
func childrenOf(pid int) (children []int, err error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(b)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", list, err)
			}
			children = append(children, child)
		}
	}
	return children, nil
}

// Do carries out a command and waits for the answer.
func (p *Process) Do(command string) (Reply, error) {
	if err := p.Send(command); err != nil {
		return Reply{}, err
	}
	var r Reply
	if err := p.answers.Decode(&r); err != nil {
		return r, fmt.Errorf("%s: the workload does not answer: %w", command, err)
	}
	p.Held = r.Held
	if r.Error != "" {
		return r, fmt.Errorf("%s: %s", command, r.Error)
	}
	return r, nil
}

// Send gives a command that is not answered: die, exit, exec, quit.
func (p *Process) Send(command string) error {
	_, err := fmt.Fprintln(p.in, command)
	return err
}

// Kill kills the workload, and it alone, with SIGKILL. The dead process stays
// a zombie until End, unless it ran in a container.
func (p *Process) Kill() error {
	victim, err := os.FindProcess(p.PID)
	if err != nil {
		return err
	}
	return victim.Kill()
}

// End lets the workload end, cleanly if it still can, and waits for it. Once
// it has ended, End does nothing.
func (p *Process) End() error {
	if p.cmd.ProcessState != nil {
		return nil
	}
	p.in.Close()
	err := p.cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil // it was killed or failed, as the caller wanted
	}
	return err
}
