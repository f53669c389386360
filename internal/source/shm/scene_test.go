package shm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMain(m *testing.M) {
	metal.Reexec()
	switch os.Args[0] {
	case readerName:
		readAsChild()
	case removeName:
		if err := removeAsChild(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	hermetic.Enter(hermetic.Options{})
	goleak.VerifyTestMain(m)
}

// scene is a host with workloads, and a Reader that watches it. Its truth is
// what the workloads say they hold.
type scene struct {
	*testing.T
	r    *Reader
	last *Sweep
}

func newScene(t *testing.T) *scene {
	t.Helper()
	hermetic.Need(t)
	s := &scene{T: t}
	s.r = s.reader(Options{})
	t.Cleanup(func() {
		for _, name := range list(t) {
			if err := os.RemoveAll("/dev/shm/" + name); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// reader makes a Reader that sees all processes: the scene's /dev/shm is
// private, so no process that is not visible can be in it.
func (s *scene) reader(o Options) *Reader {
	r := NewReader(o)
	r.complete = true
	s.Cleanup(r.Close)
	return r
}

func list(t *testing.T) (names []string) {
	entries, err := os.ReadDir("/dev/shm")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// start starts a workload and gives it commands.
func (s *scene) start(o metal.Options, commands ...string) *metal.Process {
	s.Helper()
	if (o.UID != 0 || o.Container) && os.Geteuid() != 0 {
		s.Skip("needs root: containers and other users")
	}
	p, err := metal.Start(o)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { s.end(p) })
	s.do(p, commands...)
	return p
}

func (s *scene) do(p *metal.Process, commands ...string) (r metal.Reply) {
	s.Helper()
	for _, c := range commands {
		var err error
		if r, err = p.Do(c); err != nil {
			s.Fatal(err)
		}
	}
	return r
}

func (s *scene) kill(p *metal.Process) {
	s.Helper()
	if err := p.Kill(); err != nil {
		s.Fatal(err)
	}
	s.end(p)
}

func (s *scene) end(p *metal.Process) {
	s.Helper()
	if err := p.End(); err != nil {
		s.Error(err)
	}
}

// read makes a sweep with the scene's own Reader; users are device users.
func (s *scene) read(users ...*metal.Process) *Sweep {
	var list []User
	for _, p := range users {
		list = append(list, User{PID: p.PID})
	}
	s.last = s.r.Read(list)
	if s.last.Err != nil {
		s.Fatal(s.last.Err)
	}
	return s.last
}

// region returns the one region of a chip.
func (s *scene) region(id uint64) *Region {
	s.Helper()
	var found []*Region
	for _, r := range s.last.Regions {
		if r.ID == id {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		s.Fatalf("%d regions of chip %d", len(found), id)
	}
	return found[0]
}

// holds checks that a region shows exactly what the given workloads hold.
func (s *scene) holds(id uint64, workloads ...*metal.Process) *Region {
	s.Helper()
	reg := s.region(id)
	sum := map[string]uint64{}
	for _, w := range workloads {
		u := s.use(reg, w)
		for pool, want := range w.Held[id] {
			sum[pool] += want
			if got, _, ok := u.Bytes[poolNamed(pool)].Best(); !ok || got != want {
				s.Errorf("chip %d process %d %s: %v, want %d", id, w.PID, pool, show(u.Bytes[poolNamed(pool)]), want)
			}
		}
	}
	s.sums(reg, sum)
	if len(reg.Uses) != len(workloads) {
		s.Errorf("chip %d: %d uses, want %d: %+v", id, len(reg.Uses), len(workloads), reg.Uses)
	}
	return reg
}

func (s *scene) sums(reg *Region, sum map[string]uint64) {
	s.Helper()
	for _, pool := range regionPools {
		if got, _, ok := usedOf(reg)[pool].Best(); !ok || got != sum[pool.String()] {
			s.Errorf("chip %d %s used: %v, want %d", reg.ID, pool, show(usedOf(reg)[pool]), sum[pool.String()])
		}
	}
}

func (s *scene) use(reg *Region, w *metal.Process) Use {
	s.Helper()
	for _, u := range reg.Uses {
		if u.PID == w.PID {
			return *u
		}
	}
	s.Fatalf("chip %d: process %d is not in %+v", reg.ID, w.PID, reg.Uses)
	return Use{}
}

func (s *scene) process(w *metal.Process) *Process {
	s.Helper()
	i := slices.IndexFunc(s.last.Processes, func(p *Process) bool { return p.PID == w.PID })
	if i < 0 {
		s.Fatalf("process %d is not in the sweep", w.PID)
	}
	return s.last.Processes[i]
}

// ghosts checks what the dead left, as "name:dram" per ghost in slot order.
func (s *scene) ghosts(reg *Region, want ...string) {
	s.Helper()
	var got []string
	for _, g := range reg.StaleSlots {
		got = append(got, fmt.Sprintf("%s:%s", g.Name, show(g.Bytes[model.DRAM])))
	}
	if !slices.Equal(got, want) {
		s.Errorf("ghosts %q, want %q", got, want)
	}
}

// doubts checks what a region and its uses are doubted for, apart from what
// every program of a release is.
func (s *scene) doubts(reg *Region, want ...model.DoubtKind) {
	s.Helper()
	if got := doubtsOf(reg); !slices.Equal(got, want) {
		s.Errorf("chip %d: doubts %v, want %v", reg.ID, got, want)
	}
}

func doubtsOf(reg *Region) (kinds []model.DoubtKind) {
	all := reg.Doubts
	for _, u := range reg.Uses {
		all = append(slices.Clip(all), u.Doubts...)
	}
	for _, d := range all {
		if !d.Kind.Row().Quiet && !slices.Contains(kinds, d.Kind) {
			kinds = append(kinds, d.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// usedOf is what the live processes of a region hold.
func usedOf(reg *Region) (b model.PoolBytes) {
	if reg.Why != model.Known {
		for _, pool := range regionPools {
			b[pool] = model.NoBytes(reg.Why)
		}
		return b
	}
	for _, pool := range regionPools {
		sum := model.AddUp(model.ExactBytes(0))
		for _, u := range reg.Uses {
			if !u.Together {
				sum = model.AddUp(sum, u.Bytes[pool])
			}
		}
		if reg.Together[pool].Known() {
			sum = model.AddUp(sum, reg.Together[pool])
		}
		b[pool] = sum
	}
	return b
}

func poolNamed(name string) model.Pool {
	for _, p := range model.Pools() {
		if p.String() == name {
			return p
		}
	}
	panic(name)
}

func show(b model.Bytes) string {
	if v, _, ok := b.Best(); ok {
		return fmt.Sprint(v)
	}
	return b.Status().String()
}

// readerName is the name under which the test program is a Reader in a process
// of its own, for sweeps by another user.
const readerName = "shm-reader"

// readAs makes a sweep as another user.
func (s *scene) readAs(uid int, users ...*metal.Process) *Sweep {
	s.Helper()
	if os.Geteuid() != 0 {
		s.Skip("needs root: another user")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args[0] = readerName
	for _, p := range users {
		cmd.Args = append(cmd.Args, fmt.Sprint(p.PID))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		s.Fatal(err)
	}
	s.last = &Sweep{}
	if err := json.Unmarshal(out, s.last); err != nil {
		s.Fatal(err)
	}
	return s.last
}

func readAsChild() {
	r := NewReader(Options{})
	r.complete = true
	var users []User
	for _, arg := range os.Args[1:] {
		var u User
		fmt.Sscan(arg, &u.PID)
		users = append(users, u)
	}
	sweep := r.Read(users)
	if sweep.Err != nil {
		fmt.Fprintln(os.Stderr, sweep.Err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(sweep); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
