package hermetic

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// aloneName is the name under which the program is started again as pid 1 of a
// single test.
const aloneName = "hermetic-alone"

// aloneVar names the test that a process was started for.
const aloneVar = "HERMETIC_ALONE"

// Alone runs a test where it sees no process of another one: in a pid namespace
// and a /dev/shm of its own, by another run of the test binary, so that it can
// still be parallel to others. In that run it returns true; otherwise the test
// is over when it returns, and the caller has to return.
//
//	t.Parallel()
//	if !hermetic.Alone(t) {
//		return
//	}
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneVar) == t.Name() {
		return true
	}
	Need(t)
	out, err := runAlone(t, exactPattern(t.Name()))
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case strings.Contains(out, "--- SKIP: "+t.Name()+" "):
		t.Skip(out)
	case !strings.Contains(out, "--- PASS: "+t.Name()+" "):
		t.Errorf("it was not run:\n%s", out)
	case testing.Verbose():
		t.Log(out)
	}
	return false
}

// Again runs tests of this package again, as Alone does, with more variables in
// their environment, and returns what they printed: for a test that runs
// something in a process of its own, perhaps often, and checks its output.
func Again(t *testing.T, run string, env ...string) (out string, err error) {
	t.Helper()
	Need(t)
	return runAlone(t, run, env...)
}

// exactPattern is the -run pattern of one test.
func exactPattern(name string) string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return strings.Join(parts, "/")
}

// runAlone runs tests in namespaces of their own and returns what they printed.
func runAlone(t *testing.T, run string, env ...string) (out string, err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	here, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return "", err
	}
	report, reportEnd, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer report.Close()
	defer reportEnd.Close()
	var text strings.Builder
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Args = append([]string{aloneName, here, os.Args[0]}, argumentsAlone(t, run)...)
	cmd.Env = append(append(os.Environ(), aloneVar+"="+t.Name()), env...)
	cmd.Stdout, cmd.Stderr = &text, &text
	cmd.ExtraFiles = []*os.File{reportEnd}
	cmd.SysProcAttr = namespaces()
	cmd.SysProcAttr.Cloneflags &= unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWUSER
	runtime.LockOSThread() // pid 1 dies with the thread that started it
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("making namespaces: %w", err)
	}
	reportEnd.Close()
	why, _ := io.ReadAll(report)
	err = cmd.Wait()
	if len(why) > 0 {
		err = fmt.Errorf("making a host for one test: %s", why)
	}
	return text.String(), err
}

// without leaves flags out of a command line, "-test.run=X" and "-test.run X" alike: the
// test would start itself again and again.
func without(args []string, flags ...string) (rest []string) {
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch {
		case !strings.HasPrefix(args[i], "-") || !slices.Contains(flags, name):
			rest = append(rest, args[i])
		case !hasValue && name != "test.v": // the value is the next one
			i++
		}
	}
	return rest
}

// argumentsAlone are ours, but for other tests, and within the time that is left.
func argumentsAlone(t *testing.T, run string) []string {
	args := without(os.Args[1:], "test.run", "test.skip", "test.count", "test.v", "test.timeout", "test.testlogfile", "test.coverprofile", "test.gocoverdir")
	args = append([]string{"-test.run=" + run, "-test.count=1", "-test.v=true"}, args...)
	if deadline, ok := t.Deadline(); ok {
		args = append([]string{"-test.timeout=" + max(time.Until(deadline), time.Second).String()}, args...)
	}
	return args
}
