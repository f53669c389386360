// Package ttnn drives the real ttnn in mock mode: tt-metal's own allocator and
// accounting, without hardware. Tests use it as the truth to compare with; no
// program links it.
//
// A Job is a Python process running ttnnjob's job.py, which does one step at a
// time and says after each what it holds by its own account.
package ttnn

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ttmon/ttmon/internal/cli/ttnnjob"
	"github.com/ttmon/ttmon/lib/libtest"
)

// The releases that tests run, in the order in which tools/setup reads them from
// here: the newest one is what `make test` needs; the last that accounts for all
// threads, and one between, are needed by `make test-all`; the rest by `make truth`.
const (
	Newest     = "0.81.1"
	AllThreads = "0.71.2"
	Middle     = "0.76.0"
	Release80  = "0.80.0"
	Release79  = "0.79.0"
)

// Repository is the root of the source tree that the test runs in.
func Repository() (string, error) { return libtest.Root() }

// Exit codes of tools/ttnn-setup: ttnn can never run here, or is not installed.
const (
	cannotRun    = 3
	notInstalled = 4
)

// CannotRunError says why this machine can never run ttnn: a reason to skip.
// That ttnn is merely not installed is none.
type CannotRunError struct{ Reason string }

func (e *CannotRunError) Error() string { return e.Reason }

// Python returns the path of a Python with a release of ttnn, which tools/setup
// has installed: no test waits for a download. The error says what is missing.
func Python(release string) (string, error) {
	root, err := Repository()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(root, "tools/ttnn-setup"), "-n", release)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == cannotRun {
		return "", &CannotRunError{strings.TrimSpace(complaints.String())}
	}
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == notInstalled {
		return "", fmt.Errorf("ttnn %s is not installed: run tools/setup %s", release, purpose(release))
	}
	if err != nil {
		return "", fmt.Errorf("setting up ttnn %s: %w\n%s", release, err, complaints.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// purpose is the argument with which tools/setup installs a release.
func purpose(release string) string {
	switch release {
	case Newest:
		return "test"
	case AllThreads, Middle:
		return "all"
	}
	return "truth"
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

// What a job is told and answers; see ttnnjob.
type (
	Held  = ttnnjob.Held
	Reply = ttnnjob.Reply
	Table = ttnnjob.Table
	Step  = ttnnjob.Step
	Job   = ttnnjob.Job
)

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
	cmd := command(python, filepath.Join(root, "internal/cli/ttnnjob/job.py"))
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
	return ttnnjob.Start(context.Background(), cmd, o.Dir)
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
