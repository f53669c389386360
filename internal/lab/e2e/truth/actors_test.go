package truth

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/libtest"
)

// standInActor is the C program with a library that looks like tt-metal's. A
// buffer of n MiB asks for one byte less.
type standInActor struct {
	cast
	driver *libtest.Driver
	blocks []block
}

type block struct {
	address string
	mib     uint64
}

func (h *composedHost) startStandIn(base cast) actor {
	h.Helper()
	a := &standInActor{cast: base}
	dir := h.fake()
	cmd := a.command(append(a.before(), filepath.Join(dir, "program"), filepath.Join(dir, "libtt_metal.so"))...)
	var err error
	if a.driver, err = libtest.Start(cmd); err != nil {
		h.Fatal(err)
	}
	a.ready()
	a.ask("make %d %d", uint64(4)<<30, h.chips[a.program.Chip].ID)
	a.alloc(a.program.MiB, false)
	return a
}

// ready waits until the program runs, and finds out which process it is.
func (a *standInActor) ready() {
	a.Helper()
	line, err := a.driver.Answer()
	if err != nil {
		a.Fatalf("%s: %v", a.program, err)
	}
	pid, err := strconv.Atoi(strings.TrimPrefix(line, "ready "))
	if err != nil {
		a.Fatalf("%s says %q", a.program, line)
	}
	a.all[0].pid = a.onHost(a.driver.Cmd.Process.Pid, pid)
}

func (a *standInActor) ask(format string, args ...any) string {
	a.Helper()
	answer, err := a.driver.Do(format, args...)
	if err != nil || answer == "what?" {
		a.Fatalf("%s: "+format+": %q, %v", append(append([]any{a.program}, args...), answer, err)...)
	}
	return answer
}

func (a *standInActor) alloc(mib uint64, thread bool) {
	a.Helper()
	command := "take"
	if thread {
		command = "elsewhere"
	}
	a.blocks = append(a.blocks, block{a.ask("%s %d", command, mib*mib1/8), mib})
	a.all[0].takes(mib)
}

const mib1 = uint64(mib)

// takes counts a block of the stand-in.
func (x *holder) takes(mib uint64) {
	x.used[model.DRAM] += mib*mib1 - 1
	x.inDRAM += int64(mib * mib1)
}

func (a *standInActor) free() {
	a.Helper()
	if len(a.blocks) == 0 {
		return
	}
	b := a.blocks[0]
	a.blocks = a.blocks[1:]
	a.ask("free %s", b.address)
	a.all[0].used[model.DRAM] -= b.mib*mib1 - 1
	a.all[0].inDRAM -= int64(b.mib * mib1)
}

// fork: the child has a copy of the parent's allocator, and takes a block of
// its own.
func (a *standInActor) fork(mib uint64) {
	a.Helper()
	before := descendants(a.all[0].pid)
	a.ask("writers 1 %d", mib*mib1/8)
	child := a.child(before, a.all[0])
	child.other = false
	child.takes(mib)
}

// child adds the process that is new below the program.
func (a *cast) child(before []int, parent *holder) *holder {
	a.Helper()
	for _, pid := range descendants(parent.pid) {
		if !contains(before, pid) {
			x := &holder{pid: pid, chip: parent.chip, devices: parent.devices, library: parent.library, watched: parent.watched, everyChip: parent.everyChip, other: true, child: true}
			a.all = append(a.all, x)
			return x
		}
	}
	a.Fatalf("%s: no child is there", a.program)
	return nil
}

func contains(list []int, n int) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

func (a *standInActor) spawn() {
	a.Helper()
	before := descendants(a.all[0].pid)
	a.ask("spawn sleep")
	child := a.child(before, a.all[0])
	a.until("the child is another program", func() bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child.pid))
		return string(name) == "sleep\n"
	})
}

// exec: the program begins again, with nothing. Its children stay.
func (a *standInActor) exec() {
	a.Helper()
	if err := a.driver.Tell("exec"); err != nil {
		a.Fatal(err)
	}
	a.blocks = nil
	first := a.all[0]
	// It cannot be known of a program that has not called its library yet that it
	// holds nothing.
	first.used, first.inDRAM, first.watched, first.library = [model.NumPools]uint64{}, 0, false, false
	a.ready()
}

func (a *standInActor) kill() {
	a.Helper()
	if err := syscall.Kill(a.all[0].pid, syscall.SIGKILL); err != nil {
		a.Fatal(err)
	}
	a.over()
	_ = a.driver.End()
}

func (a *standInActor) end() {
	a.Helper()
	if err := a.driver.End(); err != nil {
		a.Errorf("%s ended: %v", a.program, err)
	}
	a.over()
}

// scriptedActor accounts in a region, as tt-metal does.
type scriptedActor struct {
	cast
	process *metal.Process
	id      uint64
	first   uint64 // MiB
	counted bool   // it accounts for the chip
	unsure  bool   // its region does not say what it holds
}

func (h *composedHost) startScripted(base cast) actor {
	h.Helper()
	p := base.program
	a := &scriptedActor{cast: base, id: h.chips[p.Chip].ID, first: p.MiB, counted: !p.Silent}
	o := metal.Options{Layout: p.Layout, Container: p.Container, PrivateShm: p.PrivateShm, UID: p.UID}
	if p.Silent {
		o.Env = []string{"TT_METAL_SHM_TRACKING_DISABLED=1"}
	}
	a.process = h.metal(o, "lib "+h.install(ttnn.Newest))
	for _, d := range a.all[0].devices {
		h.sendCommands(a.process, fmt.Sprintf("device /dev/tenstorrent/%d", d))
	}
	if _, err := a.process.Do(fmt.Sprintf("open %d %d", a.id, h.chips[p.Chip].Number)); err != nil {
		a.counted = false // the region is another user's, or of another layout: it runs all the same
	}
	a.all[0].pid, a.all[0].inDRAM = a.process.PID, unknowable
	// Its library is no library, so that only its region shows it.
	a.all[0].library, a.all[0].watched = false, false
	a.alloc(p.MiB, false)
	return a
}

func (a *scriptedActor) alloc(mib uint64, thread bool) {
	a.Helper()
	line := fmt.Sprintf("alloc %d dram %dM", a.id, mib)
	if thread {
		line += " elsewhere"
		a.unsure = true
	}
	a.sendCommands(a.process, line)
	a.all[0].used[model.DRAM] += mib * mib1
}

func (a *scriptedActor) allocL1(mib uint64) {
	a.Helper()
	a.sendCommands(a.process, fmt.Sprintf("alloc %d l1 %dM", a.id, mib))
	a.all[0].used[model.L1] += mib * mib1
}

func (a *scriptedActor) free() {
	a.Helper()
	a.sendCommands(a.process, fmt.Sprintf("free %d dram %dM", a.id, a.first))
	a.all[0].used[model.DRAM] -= a.first * mib1
}

func (a *scriptedActor) fork(mib uint64) {
	a.Helper()
	if !a.counted {
		return // the scripted process hands only regions on
	}
	before := descendants(a.all[0].pid)
	a.sendCommands(a.process, fmt.Sprintf("fork alloc %d dram %dM", a.id, mib))
	child := a.child(before, a.all[0])
	child.used[model.DRAM], child.inDRAM, child.other = mib*mib1, unknowable, false
}

// exec: it becomes a program that has nothing open; its children end.
func (a *scriptedActor) exec() {
	a.Helper()
	a.leaves(a.all...)
	if err := a.process.Send("exec"); err != nil {
		a.Fatal(err)
	}
	pid := a.all[0].pid
	a.gone(pidsOf(a.all[1:])...)
	a.all = nil
	a.until("it is another program", func() bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return string(name) == "cat\n"
	})
}

func (a *scriptedActor) kill() {
	a.Helper()
	alone := len(a.actors) == 1 && a.counted && !a.unsure && !a.program.Container && a.program.Layout == 3 && len(a.all) == 1
	a.leaves(a.all...)
	if alone { // no process comes after it that could clean up, or take its slot
		a.left[len(a.left)-1].certain = true
	}
	a.slay(a.process)
	a.over()
}

func (a *scriptedActor) end() {
	a.Helper()
	a.leaves(a.all[1:]...) // which is not asked to close
	if err := a.process.End(); err != nil {
		a.Fatal(err)
	}
	a.over()
}

// ttnnActor is the real ttnn.
type ttnnActor struct {
	cast
	job   *ttnn.Job
	cmd   *exec.Cmd
	names []string
	count int
}

func (h *composedHost) startTTNN(base cast) actor {
	h.Helper()
	a := &ttnnActor{cast: base}
	var env []string
	if a.program.Silent {
		env = append(env, "TT_METAL_SHM_TRACKING_DISABLED=1")
	}
	a.job, a.cmd = h.launchCommand(a.program.Release, env, a.before()...)
	a.all[0].pid = h.onHost(a.cmd.Process.Pid, a.job.PID)
	if a.all[0].everyChip = a.program.Mesh; a.program.Mesh {
		h.do(a.job, ttnn.Step{"do": "open", "mesh": []int{1, len(h.chips)}})
	} else {
		h.do(a.job, open)
	}
	a.alloc(a.program.MiB, false)
	return a
}

func (a *ttnnActor) step(step ttnn.Step) {
	a.Helper()
	a.do(a.job, step)
	for p := range model.NumPools {
		a.all[0].used[p] = a.job.Held[p.String()]
	}
	if a.program.Silent && (len(a.chips) > 1 || a.job.Held["dram"] == 0) {
		a.all[0].library, a.all[0].watched = false, false // no source names its chip
	}
	a.all[0].inDRAM = notSaid
	if a.program.Release == ttnn.Newest {
		a.all[0].inDRAM = int64(a.do(a.job, ttnn.Step{"do": "view"}).View["dram"])
	}
}

func (a *ttnnActor) alloc(mib uint64, thread bool) {
	a.Helper()
	a.tensor("dram", mib, thread)
}

func (a *ttnnActor) allocL1(mib uint64) {
	a.Helper()
	a.tensor("l1", mib, false)
}

func (a *ttnnActor) tensor(pool string, mib uint64, thread bool) {
	a.Helper()
	a.count++
	name := fmt.Sprint("t", a.count)
	a.names = append(a.names, name)
	a.step(ttnn.Step{"do": "alloc", "name": name, "pool": pool, "bytes": mib * mib1, "thread": thread})
}

// fork: the child has a copy of the parent's allocator, and allocates a tensor
// of its own.
func (a *ttnnActor) fork(mib uint64) {
	a.Helper()
	before := descendants(a.all[0].pid)
	a.do(a.job, ttnn.Step{"do": "fork", "bytes": mib * mib1})
	child := a.child(before, a.all[0])
	child.used[model.DRAM], child.inDRAM, child.other = mib*mib1, notSaid, false
}

func (a *ttnnActor) free() {
	a.Helper()
	if len(a.names) > 0 {
		a.step(ttnn.Step{"do": "free", "name": a.names[0]})
		a.names = a.names[1:]
	}
}

func (a *ttnnActor) kill() {
	a.Helper()
	a.leaves(a.all...)
	if err := syscall.Kill(a.all[0].pid, syscall.SIGKILL); err != nil {
		a.Fatal(err)
	}
	a.over()
	_ = a.job.End() // what stands in front of it says that it was killed
}

func (a *ttnnActor) end() {
	a.Helper()
	a.leaves(a.all[1:]...)
	if err := a.job.End(); err != nil {
		a.Errorf("%s: %v", a.program, err)
	}
	a.over()
}

// reporterActor reports to ttmond's socket. It says the same of each chip of
// its device.
type reporterActor struct{ cast }

func (h *composedHost) startReporter(base cast) actor {
	h.Helper()
	a := &reporterActor{base}
	x := a.all[0]
	line := fmt.Sprintf("name=old,devices=%d,kind=report,dram=%dM,socket=%s,lib=%s", x.devices[0], a.program.MiB, h.d.alloc, h.install(ttnn.Newest))
	answer, err := h.host.Ctl("run", line)
	if err == nil {
		x.pid, err = strconv.Atoi(strings.TrimSpace(answer))
	}
	if err != nil {
		h.Fatalf("ctl run %s: %q, %v", line, answer, err)
	}
	x.used[model.DRAM], x.inDRAM, x.everyChip, x.watched = a.program.MiB*mib1, unknowable, true, false
	return a
}

func (a *reporterActor) end() {
	a.Helper()
	a.ctl("kill", strconv.Itoa(a.all[0].pid))
	a.over()
}

// sleeperActor has devices open and knows nothing of tt-metal.
type sleeperActor struct {
	cast
	cmd *exec.Cmd
}

func (h *composedHost) startSleeper(base cast) actor {
	h.Helper()
	a := &sleeperActor{cast: base}
	a.cmd = a.command(append(a.before(), "sleep", "infinity")...)
	if err := a.cmd.Start(); err != nil {
		h.Fatal(err)
	}
	a.all[0].pid, a.all[0].other = a.cmd.Process.Pid, true
	h.until("it has its devices open", func() bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", a.cmd.Process.Pid))
		return string(name) == "sleep\n"
	})
	return a
}

func (a *sleeperActor) end() {
	a.Helper()
	wipe(a.cmd)
	a.over()
}

// linkedActor drives its devices, and holds memory that is in no account.
type linkedActor struct {
	cast
	process *metal.Process
}

func (h *composedHost) startLinked(base cast) actor {
	h.Helper()
	a := &linkedActor{cast: base, process: h.metal(metal.Options{UID: base.program.UID})}
	for _, d := range a.all[0].devices {
		h.sendCommands(a.process, fmt.Sprintf("device /dev/tenstorrent/%d", d), fmt.Sprintf("map /dev/tenstorrent/%d", d))
	}
	a.all[0].pid, a.all[0].inDRAM, a.all[0].watched = a.process.PID, unknowable, false
	a.alloc(base.program.MiB, false)
	return a
}

func (a *linkedActor) alloc(mib uint64, _ bool) { a.all[0].used[model.DRAM] += mib * mib1 }

func (a *linkedActor) end() {
	a.Helper()
	if err := a.process.End(); err != nil {
		a.Errorf("%s ended: %v", a.program, err)
	}
	a.over()
}
