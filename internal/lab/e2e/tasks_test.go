package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// taskBoards are the boards of the host of each task.
var taskBoards = map[string]string{
	"compiling-or-stuck": "p150a", "slow-link": "n300,p150a", "everyday": "n300,p150a",
	"out-of-l1": "p150a", "which-chip": "galaxy-wormhole", "who": "6xn150", "leaked": "n300,p150a", "today-against-yesterday": "n300,p150a",
}

// TestTasks does what users came for, in a step or two each, with ttmond and
// ttmon-server on a simulated host. A script has these commands of its own:
//
//	ctl ARG…             makes something happen on the host
//	start NAME SETTINGS  starts a workload; sigkill NAME kills it
//	fragmented           starts a real ttnn program that finds no room in L1; sets $PID
//	compiles             starts one that compiles its kernels, and then computes; sets $PID
//	see PATTERN ARG…     waits until the output of ttmon ARG… matches
//	step PATTERN ARG…    does the same, and counts: it is what the user types, twice at most
//	task                 begins another task of the same host
//	mark NAME            sets an environment variable to the time
//
// and a condition, [users]: programs can be run as several users.
func TestTasks(t *testing.T) {
	for name, boards := range taskBoards {
		t.Run(name, func(t *testing.T) {
			if name == "compiling-or-stuck" {
				hermetic.Long(t)
			}
			t.Parallel()
			if !alone(t) {
				return
			}
			x := &task{T: t, host: start(t, sim.Options{Boards: boards}), pids: map[string]string{}, state: t.TempDir()}
			x.keeper = startKeeper(t, x.host, "--config", withoutProbes(t))
			several := func(condition string) (bool, error) {
				if condition != "users" {
					return false, fmt.Errorf("no such condition: %s", condition)
				}
				return hermetic.OtherUsers()
			}
			testscript.Run(t, testscript.Params{Condition: several, Files: []string{filepath.Join("testdata/tasks", name+".txtar")}, Cmds: map[string]func(*testscript.TestScript, bool, []string){
				"ctl":        func(_ *testscript.TestScript, _ bool, args []string) { ctl(t, x.host, args...) },
				"start":      x.start,
				"sigkill":    x.kill,
				"fragmented": x.fragmented,
				"compiles":   x.compiles,
				"see":        x.see,
				"step":       x.step,
				"task":       func(*testscript.TestScript, bool, []string) { x.steps = 0 },
				"mark": func(ts *testscript.TestScript, _ bool, args []string) {
					second := time.Now().Truncate(time.Second).Add(time.Second) // what is before it is not in it
					time.Sleep(time.Until(second))
					ts.Setenv(args[0], second.Format(time.RFC3339))
				},
			}})
		})
	}
}

// task is a host on which a task is done.
type task struct {
	*testing.T
	host   *sim.Host
	keeper *keeper
	pids   map[string]string
	state  string // what ttmon keeps by itself
	steps  int    // that the user has taken
}

func (x *task) start(_ *testscript.TestScript, _ bool, args []string) {
	x.pids[args[0]] = strings.TrimSpace(ctl(x.T, x.host, "run", "name="+args[0]+","+args[1]))
}

func (x *task) kill(ts *testscript.TestScript, _ bool, args []string) {
	if out := runProgram(x.T, x.host, "/bin/kill", "-KILL", x.pids[args[0]]); out.code != 0 {
		ts.Fatalf("%+v", out)
	}
}

// fragmented leaves holes in L1, and asks for a tensor that fits into none of them.
func (x *task) fragmented(ts *testscript.TestScript, _ bool, _ []string) {
	f := playFailing(x.T, x.host, allWatched()[0].release, true)
	ts.Setenv("PID", strconv.Itoa(f.job.PID))
	f.do(map[string]any{"do": "open", "mesh": []int{1, 1}})
	f.fragment()
	if f.ask("too-large", 2*someRows) {
		ts.Fatalf("it fits")
	}
}

// mostSteps is how many commands may answer what a user came for.
const mostSteps = 2

// step sees what a command prints that the user types.
func (x *task) step(ts *testscript.TestScript, not bool, args []string) {
	if x.steps++; x.steps > mostSteps {
		ts.Fatalf("ttmon %q is command %d", args[1:], x.steps)
	}
	x.see(ts, not, args)
}

// see waits until ttmon prints something.
func (x *task) see(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile("(?ms)" + args[0])
	var out result
	for limit := time.Now().Add(2 * time.Minute); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		// The user who runs the tests may keep runs of their own.
		command := append([]string{"XDG_STATE_HOME=" + x.state, filepath.Join(bin, "ttmon")}, args[1:]...)
		out = runProgram(x.T, x.host, "env", append(command, "--daemon", x.keeper.api)...)
		if pattern.MatchString(out.out) {
			ts.Logf("%s", out.out)
			return
		}
	}
	ts.Fatalf("ttmon %q never printed %q but\n%s%s", args[1:], args[0], out.out, out.err)
}

// withoutProbes is a configuration of ttmond that does not watch allocators: programs
// with libttmon report theirs.
func withoutProbes(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ttmond.toml")
	if err := os.WriteFile(path, []byte("[uprobe]\nenabled = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
