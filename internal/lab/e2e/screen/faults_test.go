package screen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/e2e/faults"
	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// watched is a simulated host with both daemons, a Prometheus that scrapes it, and
// the screens that a user has open: top and fleet, at 80x24.
type watched struct {
	t          *testing.T
	host       *sim.Host
	api        string
	top, fleet *pane
}

// startSim starts a simulated host. Where this user may not have one the test is skipped.
func startSim(t *testing.T, o sim.Options) *sim.Host {
	t.Helper()
	o.Exe = filepath.Join(bin, "ttmon-sim")
	h, err := sim.Start(o)
	if no, ok := errors.AsType[*sim.NoPrivilegeError](err); ok {
		t.Skipf("a simulated host needs %s, which is missing here", no.Missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// watch starts all of it, and waits until every view shows devices that are well.
func watch(t *testing.T) *watched {
	t.Helper()
	programs.Depend(t)
	h := startSim(t, sim.Options{Boards: faults.Boards, Frozen: true, UMDDump: true})
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("closing the simulated host: %v", err)
		}
	})
	dir := t.TempDir()
	w := &watched{t: t, host: h, api: filepath.Join(dir, "api")}
	w.run("ttmond", "--socket", w.api, "--alloc-socket", filepath.Join(dir, "alloc"), "--state-dir", filepath.Join(dir, "ttmond"), "--no-uprobe", "--firmware", "table")
	w.run("ttmon-server", "--daemon", w.api, "--socket", filepath.Join(dir, "server.sock"), "--state-dir", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0")
	address := ""
	w.until("a page", func() bool {
		address = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(w.ttmon("web", "--public")), "http://"), "/")
		return strings.HasPrefix(address, "127.")
	})
	w.top, w.fleet = w.screen("top --daemon "+w.api), w.screen("fleet --interval 1s --prometheus "+programs.Prometheus(t, address))
	// Links are read every few seconds: what is expected is known first.
	w.until("links are known", func() bool { return strings.Contains(w.ttmon("topo"), "2/2") })
	w.until("all is well", w.well)
	return w
}

// well reports whether the first lines of both screens are about devices, and
// about no trouble.
func (w *watched) well() bool {
	for _, p := range []*pane{w.top, w.fleet} {
		line := p.first()
		if !strings.Contains(line, "18 devices") {
			return false
		}
		for _, k := range assess.States() {
			if k != model.ConditionOK && strings.Contains(line, " "+words.Kind(k)+" ") {
				return false
			}
		}
	}
	return true
}

// run starts a daemon in the host until the test ends.
func (w *watched) run(program string, args ...string) {
	w.t.Helper()
	cmd := w.host.Command(context.Background(), filepath.Join(bin, program), args...)
	cmd.Env = append(os.Environ(), "TTMON_TIMEOUT=20s")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || w.t.Failed() {
			w.t.Errorf("%s: %v\n%s", program, err, log.String())
		}
	})
}

// ttmon runs ttmon in the host on 80 columns, and returns what it prints.
func (w *watched) ttmon(args ...string) string {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := w.host.Command(ctx, filepath.Join(bin, "ttmon"), append(args, "--daemon", w.api)...)
	cmd.Env = append(os.Environ(), "COLUMNS=80", "TTMON_TIMEOUT=20s", "LANG=C.UTF-8")
	out, err := cmd.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		w.t.Fatal(err)
	}
	return string(out)
}

// screen opens a terminal of 80x24 with a command of ttmon in the host.
func (w *watched) screen(command string) *pane {
	w.t.Helper()
	p := open(w.t)
	p.tmux("resize-window", "-x", "80", "-y", "24")
	p.typ("ttmon-sim exec --control " + w.host.Control + " -- ttmon " + command)
	p.wait("Quit")
	return p
}

func (w *watched) until(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if ok() {
			return
		}
	}
	screens := ""
	for _, p := range []*pane{w.top, w.fleet} {
		if p != nil {
			screens += "\n" + p.screen()
		}
	}
	w.t.Fatalf("waiting for %s:\n%s%s", what, w.ttmon("smi"), screens)
}

// do runs lines of ctl.
func (w *watched) do(lines []string) {
	w.t.Helper()
	for _, line := range lines {
		// A module can be removed when the last process of the fault before has gone.
		w.until("ctl "+line, func() bool {
			_, err := w.host.Ctl(faults.Arguments(line)...)
			if err != nil && !strings.Contains(err.Error(), "is in use") {
				w.t.Fatalf("ctl %s: %v", line, err)
			}
			return err == nil
		})
	}
}

// first is the first line of a screen.
func (p *pane) first() string {
	line, _, _ := strings.Cut(p.screen(), "\n")
	return line
}

// rows are the lines of smi that begin with a device's number and name its state:
// its row in the table, and its row of trouble.
func rows(table string, f *faults.Fault) []string {
	return regexp.MustCompile(fmt.Sprintf(`(?m)^ *%d  .*%s.*$`, f.Device, regexp.QuoteMeta(f.What))).FindAllString(table, -1)
}

// TestFaults: every fault of the simulator is in the row of its device in smi, in
// one row of trouble below, and in the first line of top and fleet, at 80x24. It
// goes when it is over, and both moments are events.
func TestFaults(t *testing.T) {
	w := watch(t)
	bus := strings.Fields(w.ttmon("smi", "--query-device=pci.bus_id", "--format=csv,noheader"))
	if len(bus) != 18 {
		t.Fatalf("bus ids %q", bus)
	}
	list := faults.All(bus)
	if testing.Short() {
		list = list[:2]
	}
	for _, f := range list {
		t.Run(f.Name, func(t *testing.T) {
			was := w.t
			w.t, w.top.t, w.fleet.t = t, t, t
			defer func() { w.t, w.top.t, w.fleet.t = was, was, was }()
			w.play(&f)
		})
	}
}

// play plays one fault from its beginning to its end.
func (w *watched) play(f *faults.Fault) {
	count := "1 " + f.What
	if f.Host {
		count = "18 " + f.What
	}
	table := ""
	w.do(f.Begin)
	w.until(f.What+" in smi", func() bool {
		table = w.ttmon("smi")
		list := rows(table, f)
		return len(list) > 0 && strings.Contains(list[0], "  "+f.What+" ")
	})
	if list := rows(table, f); !f.Host && len(list) != 2 {
		w.t.Errorf("not one row of trouble for device %d, but %q:\n%s", f.Device, list, table)
	}
	w.until(count+" in the first line of top", func() bool { return strings.Contains(w.top.first(), count) })
	w.until(count+" in the first line of fleet", func() bool { return strings.Contains(w.fleet.first(), count) })
	w.do(f.End)
	w.until("all is well again", func() bool {
		return w.well() && !strings.Contains(w.ttmon("smi"), " "+f.What+" ")
	})
	log := ""
	defer func() {
		if w.t.Failed() {
			w.t.Logf("events:\n%s", log)
		}
	}()
	w.until(strconv.Quote(f.Begun)+" and "+strconv.Quote(f.Over)+" in events", func() bool {
		log = w.ttmon("events", "-n", "1000")
		from := strings.Index(log, f.Begun)
		return from >= 0 && strings.Contains(log[from:], f.Over)
	})
}
