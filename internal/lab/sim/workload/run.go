package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"
)

// Env carries the Spec to a workload's process; its presence is what makes a
// process a workload.
const Env = "TTMON_SIM_WORKLOAD"

// inheritedEnv marks a process that got its descriptors from another one.
const inheritedEnv = "TTMON_SIM_INHERITED"

// Run is the life of a workload's process. The Manager's end of standard
// input says when it is over; descriptor 3 takes one line, "ready" or what
// went wrong.
func Run() error {
	var s Spec
	if err := json.Unmarshal([]byte(os.Getenv(Env)), &s); err != nil {
		return fmt.Errorf("reading the workload's description: %w", err)
	}
	inherited := os.Getenv(inheritedEnv) != ""
	ctx, cancel := context.WithCancel(context.Background())
	orders := make(chan string, 16)
	go func() { readOrders(os.Stdin, orders); cancel() }()

	answer := newAnswer(s.Kind != "" && !inherited)
	err := s.live(ctx, inherited, link{answer: answer.writeFirst, load: answer.load, orders: orders})
	if err != nil {
		answer.writeFirst(err.Error())
	}
	return err
}

// live is what the process of a workload does. An inheritor has descriptors
// that are open already, and does nothing but hold them.
func (s Spec) live(ctx context.Context, inherited bool, link link) error {
	if s.ownMounts() && !inherited {
		if err := metal.Furnish(s.PIDNS, s.OwnShm); err != nil {
			return err
		}
	}
	os.WriteFile("/proc/self/comm", []byte(s.Name), 0)
	files, err := s.openNodes(inherited)
	if err != nil {
		return err
	}
	if s.Orphan && !inherited {
		link.answer(ready)
		return nil // the child stays
	}
	go keepBusy(ctx, s.CPU)
	ballast := make([]byte, s.RSS)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	if s.Kind != "" && !inherited {
		if err = s.runKind(ctx, link); err != nil {
			link.answer(err.Error())
		}
	}
	link.answer(ready)
	<-ctx.Done()
	// Else the collector would give the memory back and close the nodes.
	runtime.KeepAlive(ballast)
	runtime.KeepAlive(files)
	return err
}

func (s Spec) runKind(ctx context.Context, link link) error {
	k, err := makeKind(s.Kind, s.Params)
	if err != nil {
		return err
	}
	chips, err := chipsOf(s)
	if err != nil {
		return err
	}
	return k.run(ctx, s, chips, link)
}

// readOrders passes on the lines that come in until there are no more.
func readOrders(from io.Reader, to chan<- string) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		select {
		case to <- lines.Text():
		default: // the kind takes none, or not so many
		}
	}
}

// answer is what a workload says to its starter: one line that it waits for,
// then changes of the load.
type answer struct {
	file *os.File
	keep bool // there may be more than the first line
	once sync.Once
}

func newAnswer(keep bool) *answer { return &answer{file: os.NewFile(3, "answer"), keep: keep} }

// writeFirst says the first line, unless one was said before.
func (a *answer) writeFirst(line string) {
	a.once.Do(func() {
		fmt.Fprintln(a.file, strings.ReplaceAll(line, "\n", "; "))
		if !a.keep || line != ready {
			a.file.Close()
		}
	})
}

// load says a change of the load. Where the Manager has gone that is lost.
func (a *answer) load(to float64) { fmt.Fprintln(a.file, loadWord, to) }

// The words of an answer.
const (
	ready    = "ready"
	loadWord = "load"
)

// openNodes opens the nodes and starts the children that inherit them.
func (s Spec) openNodes(inherited bool) (files []*os.File, err error) {
	if inherited {
		return nil, nil // they are open, from 4 on
	}
	for _, index := range s.Devices {
		for range s.FDs {
			f, err := s.openNode(index)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	children := s.Forks
	if s.Orphan {
		children = max(children, 1)
	}
	for range children {
		if err := s.fork(files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (s Spec) openNode(index int) (*os.File, error) {
	path := s.Root + "/dev/tenstorrent/" + strconv.Itoa(index)
	flags := unix.O_RDWR | unix.O_CLOEXEC
	if s.Append {
		flags |= unix.O_APPEND
	}
	// Not os.OpenFile: its poller has no business with a device node.
	fd, err := unix.Open(path, flags, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ownMounts reports whether the workload has a mount namespace of its own, as
// containers have. Another user may not mount anything in it.
func (s Spec) ownMounts() bool { return s.OwnShm || s.PIDNS && s.User == 0 }

// fork starts a child that holds the same open descriptions.
func (s Spec) fork(files []*os.File) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	defer write.Close()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: s.Command,
		Env:   append(os.Environ(), inheritedEnv+"=1"),
		Stdin: os.Stdin, Stderr: os.Stderr,
		ExtraFiles: append([]*os.File{write}, files...),
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a child: %w", err)
	}
	go cmd.Wait()
	write.Close()
	if line, err := io.ReadAll(read); string(line) != ready+"\n" {
		return fmt.Errorf("starting a child: %s", errors.Join(err, errors.New(string(line))))
	}
	return nil
}

// keepBusy keeps a number of cores busy.
func keepBusy(ctx context.Context, cores float64) {
	const slice = 20 * time.Millisecond
	for ; cores > 0; cores-- {
		share := min(cores, 1)
		go func() {
			for ctx.Err() == nil {
				for until := time.Now().Add(time.Duration(share * float64(slice))); time.Now().Before(until); {
				}
				time.Sleep(time.Duration((1 - share) * float64(slice)))
			}
		}()
	}
}

// attributes are how the Manager starts a workload's process.
func (s Spec) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if s.User != 0 {
		a.Credential = &syscall.Credential{Uid: uint32(s.User), Gid: uint32(s.User), NoSetGroups: true}
	}
	if s.PIDNS {
		a.Cloneflags |= unix.CLONE_NEWPID
	}
	if s.ownMounts() {
		a.Cloneflags |= unix.CLONE_NEWNS
	}
	return a
}
