// Package ttnn drives the real ttnn in mock mode: tt-metal's own allocator and
// accounting, without hardware. Tests use it as the truth to compare with; no
// program links it.
//
// A Job is a Python process running testdata/ttnn/job.py, which does one step
// at a time and says after each what it holds by its own account.
package ttnn

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ttmon/ttmon/lib/libtest"
)

// The releases that tests run: the newest one, and the last that accounts for
// all threads.
const (
	Newest     = "0.81.1"
	AllThreads = "0.71.2"
)

// Repository is the root of the source tree that the test runs in.
func Repository() (string, error) { return libtest.Root() }

// cannotRun is the exit code of tools/ttnn-setup where ttnn can never run.
const cannotRun = 3

// CannotRunError says why this machine can never run ttnn: a reason to skip.
// That ttnn is merely not installed is none.
type CannotRunError struct{ Reason string }

func (e *CannotRunError) Error() string { return e.Reason }

// Python returns the path of a Python with a release of ttnn, and installs it
// on first use (tools/ttnn-setup). The error says what is missing.
func Python(release string) (string, error) {
	root, err := Repository()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(root, "tools/ttnn-setup"), release)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == cannotRun {
		return "", &CannotRunError{strings.TrimSpace(complaints.String())}
	}
	if err != nil {
		return "", fmt.Errorf("setting up ttnn %s: %w\n%s", release, err, complaints.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// Descriptor is the path of one of the cluster descriptors in the tree:
// "blackhole_P150", "wormhole_N300_pci_bdf", "6u_cluster_desc", ….
func Descriptor(name string) (string, error) {
	root, err := Repository()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "internal/source/umd/testdata", name+".yaml")
	_, err = os.Stat(path)
	return path, err
}

// Options say what a job runs on.
type Options struct {
	Release    string   // empty: Newest
	Descriptor string   // path of the cluster descriptor; required, but for a Command that knows one
	Dir        string   // for logs, kernels and whatever it writes; required
	Env        []string // added to ours
	// Command makes the command that becomes the job, for instance in a
	// simulated host, which also names a descriptor. Nil: exec.Command.
	Command func(name string, args ...string) *exec.Cmd
}

// Held is what a job holds on each of its chips, in bytes by pool: "dram",
// "l1", "l1_small", "trace".
type Held map[string]uint64

// Reply is the answer to one step.
type Reply struct {
	PID   int     `json:"pid"`
	Error string  `json:"error"`
	Held  Held    `json:"held"`
	Chips int     `json:"chips"` // opened
	View  Held    `json:"view"`  // of the allocator, with padding, over all banks
	Fits  bool    `json:"fits"`  // answer to "try"
	Round float64 `json:"round"` // answer to "spin": ns
	CB    uint64  `json:"cb"`    // answer to "end_capture": circular buffers, over all cores
	// CBCore is what they take of one core, of programs that have the same cores.
	CBCore uint64 `json:"cb_core"`
	Table  map[string]Table
}

// Table is what the allocator knows of a pool. All bytes are of one bank.
type Table struct {
	Banks     uint64      `json:"banks"` // 0 where the release does not tell
	Capacity  uint64      `json:"capacity"`
	Allocated uint64      `json:"allocated"`
	Free      uint64      `json:"free"`
	Largest   uint64      `json:"largest"`
	Blocks    [][2]uint64 `json:"blocks"` // address from the pool's base, and size; by address
}

// Step is a command of job.py; see there.
type Step map[string]any

// Job is a ttnn program that does what it is told.
type Job struct {
	PID  int
	Held Held // as of the last answer

	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
	log     *os.File
	ended   bool
}

// Start starts a job. It has opened no chip yet.
func Start(o Options) (*Job, error) {
	release := o.Release
	if release == "" {
		release = Newest
	}
	python, err := Python(release)
	if err != nil {
		return nil, err
	}
	root, err := Repository()
	if err != nil {
		return nil, err
	}
	command := exec.Command
	if o.Command != nil {
		command = o.Command
	}
	cmd := command(python, filepath.Join(root, "testdata/ttnn/job.py"))
	cmd.Dir = o.Dir
	cmd.Env = append(os.Environ(),
		"TT_METAL_MOCK_CLUSTER_DESC_PATH="+o.Descriptor,
		"TT_METAL_LOGS_PATH="+o.Dir,
		"TT_METAL_CACHE="+filepath.Join(o.Dir, "cache"),
		"HOME="+o.Dir, // it keeps its own cache there
		"TT_LOGGER_LEVEL=error",
	)
	if release == AllThreads {
		// Before 0.72 fast dispatch does not work in mock mode.
		cmd.Env = append(cmd.Env, "TT_METAL_SLOW_DISPATCH_MODE=1")
	}
	cmd.Env = append(cmd.Env, o.Env...)
	return start(cmd, o.Dir)
}

func start(cmd *exec.Cmd, dir string) (j *Job, err error) {
	j = &Job{cmd: cmd}
	if j.log, err = os.CreateTemp(dir, "job-*.log"); err != nil {
		return nil, err
	}
	cmd.Stderr = j.log
	if j.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.answers = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	reply, err := j.Do(Step{"do": "ping"})
	if err != nil {
		_ = j.Kill()
		return nil, err
	}
	j.PID = reply.PID
	return j, nil
}

// Do makes a step and waits for the answer.
func (j *Job) Do(s Step) (r Reply, err error) {
	line, err := json.Marshal(s)
	if err != nil {
		return r, err
	}
	if _, err := j.in.Write(append(line, '\n')); err != nil {
		return r, fmt.Errorf("%s: %w\n%s", line, err, j.said())
	}
	answer, err := j.answers.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("%s: ttnn does not answer: %w\n%s", line, err, j.said())
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, fmt.Errorf("%s: %q: %w", line, answer, err)
	}
	j.Held = r.Held
	if r.Error != "" {
		return r, fmt.Errorf("%s: %s", line, r.Error)
	}
	return r, nil
}

// said is the end of what the job wrote to standard error.
func (j *Job) said() string {
	b, _ := os.ReadFile(j.log.Name())
	return string(b[max(0, len(b)-4000):])
}

// Kill kills the job (SIGKILL) and waits for its end.
func (j *Job) Kill() error {
	if err := j.cmd.Process.Kill(); err != nil {
		return err
	}
	return j.wait()
}

// End lets the job close its chips and end. Once it has ended, End does
// nothing.
func (j *Job) End() error {
	if j.ended {
		return nil
	}
	j.in.Close()
	return j.wait()
}

func (j *Job) wait() error {
	defer j.log.Close()
	j.ended = true
	err := j.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 {
		return nil // killed
	} else if ok {
		return fmt.Errorf("ttnn ended: %w\n%s", exit, j.said())
	}
	return err
}

// Imitate makes a directory look like one that a release is installed in, as
// far as can be seen from outside, and returns the path of its library.
func Imitate(dir, release string) (lib string, err error) {
	site := filepath.Join(dir, "lib/python3.12/site-packages")
	lib = filepath.Join(site, "ttnn/build/lib/libtt_metal.so")
	for _, dir := range []string{filepath.Dir(lib), filepath.Join(site, "ttnn-"+release+".dist-info")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}
	return lib, os.WriteFile(lib, make([]byte, os.Getpagesize()), 0o644)
}
