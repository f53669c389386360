package truth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

const (
	nobody = 65534
	mib    = 1 << 20
)

// stage is where a scenario is played: a simulated host and who is on it.
type stage struct {
	*testing.T
	name  string
	alone bool
	host  *sim.Host
	chips []cluster.Chip // as the simulator has them, in UMD's order
}

// on makes the host.
func (s *stage) on(boards string) *stage { return s.with(sim.Options{Boards: boards}) }

func (s *stage) with(o sim.Options) *stage {
	s.Helper()
	programs.Depend(s)
	o.Exe = filepath.Join(bin, "ttmon-sim")
	h, err := sim.Start(o)
	if no, ok := errors.AsType[*sim.NoPrivilegeError](err); ok {
		s.Skipf("a simulated host needs %s, which is missing here", no.Missing)
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := h.Close(); err != nil {
			s.Errorf("closing the simulated host: %v", err)
		}
	})
	s.host = h
	if o.Driver != "none" {
		c, err := cluster.Load(h.Root() + cluster.Dir)
		if err != nil {
			s.Fatal(err)
		}
		s.chips = c.Chips()
	}
	return s
}

func (s *stage) ctl(args ...string) {
	s.Helper()
	if _, err := s.host.Ctl(args...); err != nil {
		s.Fatalf("ctl %v: %v", args, err)
	}
}

// ttnn starts a real ttnn program that has all devices open.
func (s *stage) ttnn(release string, env ...string) *ttnn.Job {
	s.Helper()
	return s.launch(release, env, filepath.Join(bin, "ttmon-sim"), "open", "--")
}

// launch starts a real ttnn program behind a command.
func (s *stage) launch(release string, env []string, before ...string) *ttnn.Job {
	s.Helper()
	j, _ := s.launchCommand(release, env, before...)
	return j
}

// launchCommand is launch, with the command that became the program.
func (s *stage) launchCommand(release string, env []string, before ...string) (j *ttnn.Job, cmd *exec.Cmd) {
	s.Helper()
	j = ttnn.Play(s, ttnn.Options{
		Release: release, Dir: s.TempDir(), Descriptor: sim.MockDescriptor, Env: env,
		Command: func(name string, args ...string) *exec.Cmd {
			line := append(append(slices.Clone(before), name), args...)
			cmd = s.host.Command(context.Background(), line[0], line[1:]...) // it ends when its input does
			return cmd
		},
	})
	return j, cmd
}

// do lets a program take steps.
func (s *stage) do(j *ttnn.Job, steps ...ttnn.Step) (r ttnn.Reply) {
	s.Helper()
	for _, step := range steps {
		var err error
		if r, err = j.Do(step); err != nil {
			s.Fatal(err)
		}
	}
	return r
}

func (s *stage) kill(j *ttnn.Job) {
	s.Helper()
	if err := j.Kill(); err != nil {
		s.Fatal(err)
	}
}

// metal starts a scripted process; "@" in its commands is the first chip.
func (s *stage) metal(o metal.Options, commands ...string) *metal.Process {
	s.Helper()
	if o.UID != 0 {
		hermetic.NeedOtherUsers(s)
	}
	o.Command = func(args ...string) *exec.Cmd {
		return s.host.Command(context.Background(), filepath.Join(bin, "ttmon-sim"), append([]string{"metal"}, args...)...)
	}
	p, err := metal.Start(o)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = p.End() })
	s.sendCommands(p, commands...)
	return p
}

func (s *stage) sendCommands(p *metal.Process, commands ...string) {
	s.Helper()
	for _, line := range commands {
		if _, err := p.Do(strings.ReplaceAll(line, "@", fmt.Sprint(s.chips[0].ID))); err != nil {
			s.Fatal(err)
		}
	}
}

// slay kills a scripted process and waits until it is gone.
func (s *stage) slay(p *metal.Process) {
	s.Helper()
	if err := errors.Join(p.Kill(), p.End()); err != nil {
		s.Fatal(err)
	}
}

// said is what a command printed.
type said struct {
	out, err string
	code     int
}

// run runs a program in the host.
func (s *stage) run(program string, args ...string) said {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
	defer cancel()
	cmd := s.host.Command(ctx, program, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		s.Fatalf("running %v: %v", cmd.Args, err)
	}
	return said{out.String(), complaints.String(), cmd.ProcessState.ExitCode()}
}

// needsToBeAlone is for what goes through all processes: hosts that are
// simulated at a time share a pid namespace, and the programs of one would look
// to the other like containers that have its chips and their own /dev/shm.
func (s *stage) needsToBeAlone() {
	s.Helper()
	if !s.alone {
		s.Fatalf("the scenario %q looks at all processes: it must be played alone", s.name)
	}
}

// ttmon runs it as root, and asks no daemon.
func (s *stage) ttmon(args ...string) said {
	s.Helper()
	if args[0] == "stale" {
		s.needsToBeAlone()
	}
	return s.run(filepath.Join(bin, "ttmon"), append(args, "--direct")...)
}

// asNobody runs ttmon as a user without any right.
func (s *stage) asNobody(args ...string) said {
	s.Helper()
	hermetic.NeedOtherUsers(s)
	return s.run("setpriv", append([]string{
		"--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", filepath.Join(bin, "ttmon"),
	}, args...)...)
}

// inContainer runs ttmon in a pid namespace of its own that has the host's
// /dev/shm and devices.
func (s *stage) inContainer(args ...string) said {
	s.Helper()
	return s.run("unshare", append([]string{
		"--pid", "--fork", "--mount", "sh", "-c",
		`mount --rbind /proc/driver "$1" && mount -t proc proc /proc && mount --rbind "$1" /proc/driver && shift && exec "$@"`,
		"sh", s.TempDir(), filepath.Join(bin, "ttmon"),
	}, append(args, "--direct")...)...)
}

// decode reads the JSON of ttmon smi.
func (s *stage) decode(r said) *model.Snapshot {
	s.Helper()
	snap, err := wire.Decode([]byte(r.out))
	if err != nil {
		s.Fatalf("reading the snapshot: %v\n%s%s", err, r.out, r.err)
	}
	return snap
}

// snapshot is what ttmon smi --json shows to root.
func (s *stage) snapshot() *model.Snapshot {
	s.Helper()
	return s.decode(s.ttmon("smi", "--json"))
}

// device adds rows for what is used of a device: pools by name.
func (s *stage) device(snap *model.Snapshot, index int, truth ttnn.Held, pools ...model.Pool) {
	s.Helper()
	d := snap.Device(index)
	if d == nil {
		s.fact(fmt.Sprintf("device %d", index), "there", "not there")
		return
	}
	for _, p := range pools {
		s.figure(fmt.Sprintf("device %d %s", index, p), truth[p.String()], d.Memory.Pools[p].Used, s.beside(snap, index))
		s.occupied(fmt.Sprintf("device %d %s occupied", index, p), truth[p.String()], d.Memory.Pools[p].Occupied, s.beside(snap, index))
	}
}

// occupied adds a row for what is taken of a pool, where it is known: blocks are
// no smaller than what was asked for, and in DRAM of tensors this large hardly
// larger.
func (s *stage) occupied(what string, asked uint64, said model.Bytes, doubts []model.Doubt) {
	s.Helper()
	n, bound, known := said.Best()
	switch {
	case !known:
		return
	case bound == model.Exact && n >= asked && (asked < mib || n < asked+asked/4):
		asked = n
	case bound == model.AtLeast && n >= asked && n < asked+asked/4:
		asked = n
	}
	s.figure(what, asked, said, doubts)
}

// beside are the doubts that a user finds beside the figures of a device: its
// own, and those of its processes.
func (s *stage) beside(snap *model.Snapshot, index int) []model.Doubt {
	list := slices.Clone(snap.Device(index).Memory.Doubts)
	for i := range snap.Processes {
		for _, u := range snap.Processes[i].Devices {
			if u.Device == index {
				list = append(list, u.Doubts...)
			}
		}
	}
	return list
}

// process adds rows for what a process holds on a device.
func (s *stage) process(snap *model.Snapshot, pid, index int, truth ttnn.Held, pools ...model.Pool) {
	s.Helper()
	for i := range snap.Processes {
		for k := range snap.Processes[i].Devices {
			u := &snap.Processes[i].Devices[k]
			if snap.Processes[i].PID != pid || u.Device != index {
				continue
			}
			for _, p := range pools {
				s.figure(fmt.Sprintf("its process %s", p), truth[p.String()], u.Memory[p], u.Doubts)
			}
			return
		}
	}
	s.fact(fmt.Sprintf("process on device %d", index), "there", "not there")
}

// held adds rows for device and process 0.
func (s *stage) held(j *ttnn.Job, pools ...model.Pool) *model.Snapshot {
	s.Helper()
	snap := s.snapshot()
	s.device(snap, 0, j.Held, pools...)
	s.process(snap, j.PID, 0, j.Held, pools...)
	return snap
}

// daemon is a ttmond in the host.
type daemon struct {
	api, alloc string
	args       []string
	cmd        *exec.Cmd
	log        string // the file it logs to
}

// daemon starts the real ttmond, which ends with the test. It watches no
// allocators.
func (s *stage) daemon() *daemon {
	s.Helper()
	return s.daemonWith("--no-uprobe")
}

// daemonWith starts one with flags.
func (s *stage) daemonWith(flags ...string) *daemon {
	s.Helper()
	s.needsToBeAlone()
	dir := s.TempDir()
	for _, made := range []string{dir, filepath.Dir(dir)} { // other users are to reach the sockets
		if err := os.Chmod(made, 0o755); err != nil {
			s.Fatal(err)
		}
	}
	d := &daemon{api: filepath.Join(dir, "api"), alloc: filepath.Join(dir, "alloc"), log: filepath.Join(dir, "log")}
	d.args = append([]string{
		"--socket", d.api, "--alloc-socket", d.alloc, "--state-dir", filepath.Join(dir, "state"),
	}, flags...)
	s.bootDaemon(d)
	return d
}

// reloadDaemon has a daemon executed again, in its place.
func (s *stage) reloadDaemon(d *daemon) {
	s.Helper()
	cmd := s.host.Command(context.Background(), filepath.Join(bin, "ttmond"), append(slices.Clone(d.args), "--reload")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		text, _ := os.ReadFile(d.log)
		s.Fatalf("the reload of ttmond: %v: %s\n%s", err, out, text)
	}
}

// bootDaemon starts a daemon.
func (s *stage) bootDaemon(d *daemon) {
	s.Helper()
	d.cmd = s.host.Command(context.Background(), filepath.Join(bin, "ttmond"), d.args...)
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	d.cmd.Stderr = log
	cmd := d.cmd
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
	})
	for limit := time.Now().Add(5 * time.Minute); s.run(filepath.Join(bin, "ttmon"), "smi", "-L", "--daemon", d.api).code != 0; time.Sleep(30 * time.Millisecond) {
		if time.Now().After(limit) {
			text, _ := os.ReadFile(d.log)
			s.Fatalf("ttmond does not answer:\n%s", text)
		}
	}
}

// daemonSnapshot is what ttmond shows. On a busy machine it may be late.
func (s *stage) daemonSnapshot(d *daemon) (snap *model.Snapshot) {
	s.Helper()
	s.until("ttmond answers", func() bool {
		var err error
		snap, err = wire.Decode([]byte(s.run(filepath.Join(bin, "ttmon"), "smi", "--json", "--daemon", d.api).out))
		return err == nil
	})
	return snap
}

// until waits for something that must come.
func (s *stage) until(what string, holds func() bool) {
	s.Helper()
	for limit := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(limit) {
			s.Fatalf("it never came to this: %s", what)
		}
	}
}
