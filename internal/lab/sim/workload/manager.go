package workload

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Devices is what a Manager needs to know about the host's devices.
type Devices interface {
	// Indices lists the devices that are plugged in.
	Indices() []int
	// SetWork receives the load that all workloads together put on a device.
	SetWork(index int, load float64)
}

// Manager starts workloads and ends them.
type Manager struct {
	// Root is where the devices are, in tests; empty is /.
	Root    string
	Devices Devices

	mu      sync.Mutex
	running []*Process
	closed  bool
}

// Process is a workload that runs. An orphan's PID is that of the opener,
// which has ended.
type Process struct {
	Spec Spec
	PID  int

	load   float64  // on each of its devices
	life   *os.File // takes orders; closing it ends the workload, with its children
	exited chan struct{}
}

// Start runs a workload and returns when it has its nodes open.
func (m *Manager) Start(s Spec) (*Process, error) {
	if s.Devices == nil {
		s.Devices = m.Devices.Indices()
	}
	s.Root = m.Root
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	// Not cmd.StdinPipe: that is closed when the process ends, and the children
	// of an orphan's descriptors live on.
	stdin, life, err := os.Pipe()
	if err != nil {
		read.Close()
		return nil, err
	}
	defer stdin.Close()
	cmd := &exec.Cmd{
		// Not by name: the file may lie where the workload's user may not look.
		Path: "/proc/self/exe", Args: s.Command,
		Env:         append(os.Environ(), Env+"="+string(text)),
		Stdin:       stdin,
		Stderr:      os.Stderr,
		ExtraFiles:  []*os.File{write},
		SysProcAttr: s.attributes(),
	}
	if err := cmd.Start(); err != nil {
		life.Close()
		read.Close()
		if s.User != 0 && errors.Is(err, syscall.EINVAL) {
			err = fmt.Errorf("user %d: the simulated host of an ordinary user has no other users; root's has", s.User)
		}
		return nil, fmt.Errorf("starting workload %s: %w", s.Name, err)
	}
	write.Close()
	p := &Process{Spec: s, PID: cmd.Process.Pid, load: s.Load, life: life, exited: make(chan struct{})}
	lines := bufio.NewReader(read)
	answer, err := lines.ReadString('\n')
	if answer != ready+"\n" {
		life.Close()
		read.Close()
		cmd.Wait()
		return nil, fmt.Errorf("starting workload %s: %s", s.Name, errors.Join(errors.New(strings.TrimSpace(answer)), err))
	}
	// On the list before it is waited for: a short script may have ended already,
	// and would then be put on the list after it was taken off.
	err = m.add(p)
	go func() { m.follow(p, lines); read.Close() }()
	go func() { cmd.Wait(); close(p.exited); m.ended(p) }()
	return p, err
}

func (m *Manager) add(p *Process) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		p.life.Close()
		return errors.New("the simulated host is closing")
	}
	m.running = append(m.running, p)
	m.spread(m.Devices.Indices())
	return nil
}

// follow takes note of the loads that a workload reports, until it ends.
func (m *Manager) follow(p *Process, lines *bufio.Reader) {
	for {
		var load float64
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if n, _ := fmt.Sscanf(line, loadWord+" %g", &load); n == 1 && load >= 0 && load <= 1 {
			m.mu.Lock()
			p.load = load
			m.spread(p.Spec.Devices) // the others may stand still on purpose
			m.mu.Unlock()
		}
	}
}

// Order sends a line to the workloads of that name or pid, and returns how many
// there are. Children share their parent's input, so that of a workload with
// no one knows which of the children would read it.
func (m *Manager) Order(nameOrPID, line string) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.running {
		if !p.Is(nameOrPID) {
			continue
		}
		n++
		if p.Spec.Params["work"] == "" {
			return n, fmt.Errorf("workload %s was started without work=: it has its chips do nothing", p.Spec.Name)
		}
		if p.Spec.Forks > 0 || p.Spec.Orphan {
			return n, fmt.Errorf("workload %s has children: it takes no orders", p.Spec.Name)
		}
		if err := p.life.SetWriteDeadline(time.Now().Add(orderTimeout)); err != nil {
			return n, err
		}
		if _, err := fmt.Fprintln(p.life, line); err != nil {
			return n, fmt.Errorf("telling workload %s: %w", p.Spec.Name, err)
		}
	}
	return n, nil
}

// orderTimeout is how long a workload that reads nothing may hold up an order.
const orderTimeout = time.Second

// Is reports whether that is its name or pid.
func (p *Process) Is(nameOrPID string) bool {
	return p.Spec.Name == nameOrPID || strconv.Itoa(p.PID) == nameOrPID
}

// ended takes a process off the list. An orphan outlives its opener.
func (m *Manager) ended(p *Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !p.Spec.Orphan {
		m.drop(p)
	}
}

func (m *Manager) drop(p *Process) {
	p.life.Close()
	m.running = slices.DeleteFunc(m.running, func(q *Process) bool { return q == p })
	m.spread(m.Devices.Indices())
}

// spread tells devices their load. m.mu is held.
func (m *Manager) spread(devices []int) {
	load := make(map[int]float64)
	for _, p := range m.running {
		for _, index := range p.Spec.Devices {
			load[index] += p.load
		}
	}
	for _, index := range devices {
		m.Devices.SetWork(index, load[index])
	}
}

// List returns what runs.
func (m *Manager) List() []*Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.running)
}

// Kill ends the workloads of that name or pid, and waits for them; it returns
// how many there were.
func (m *Manager) Kill(nameOrPID string) int {
	var hit []*Process
	m.mu.Lock()
	for _, p := range slices.Clone(m.running) {
		if p.Is(nameOrPID) {
			hit = append(hit, p)
			m.drop(p)
		}
	}
	m.mu.Unlock()
	for _, p := range hit {
		<-p.exited
	}
	return len(hit)
}

// Close ends all workloads.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	running := slices.Clone(m.running)
	for _, p := range running {
		m.drop(p)
	}
	m.mu.Unlock()
	for _, p := range running {
		<-p.exited
	}
}
