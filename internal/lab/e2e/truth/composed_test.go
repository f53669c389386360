package truth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// composedHost is the host of a composition while it is played.
type composedHost struct {
	*stage
	c      composition
	d      *daemon
	server string // the socket of the ttmon-server beside it
	secret secretJudge
	actors map[int]actor
	left   []leftover
	past   []moment
}

// leftover is what a killed process may have left in the accounting of a chip.
type leftover struct {
	chip    int
	bytes   uint64
	certain bool // no process cleans up after it, and all users can see it
}

// moment is what all devices hold from a time on, and whether ttmond was there.
type moment struct {
	since time.Time
	// settled is when ttmond was seen to be up to date; zero: never.
	settled time.Time
	dram    map[int]want // by device
	daemon  bool
}

// play lets everything happen, and then everybody look.
func (s *stage) play(c composition) *composedHost {
	s.Helper()
	h := &composedHost{stage: s.on(c.Boards), c: c, actors: map[int]actor{}}
	h.remember()
	for _, step := range c.Steps {
		h.past = append(h.past, moment{since: time.Now()}) // a step takes its time
		if step.Do.ofDaemon() {
			h.daemonStep(step.Do)
		} else {
			h.programStep(step)
		}
		h.remember()
		h.judgeSecrets()
	}
	h.settle()
	h.judgeHidden()
	return h
}

// settle waits until ttmond shows snapshots that it began after all has happened:
// on a busy machine one takes it seconds.
func (h *composedHost) settle() {
	h.Helper()
	if h.d == nil {
		return
	}
	happened := time.Now()
	h.until("ttmond is up to date", func() bool {
		return h.stage.daemonSnapshot(h.d).Time.After(happened.Add(settles / 2))
	})
	h.past[len(h.past)-1].settled = time.Now()
}

// caughtUp reports whether ttmond has published so many snapshots since it was
// seen to be up to date that what is still wrong stays so.
func (h *composedHost) caughtUp(seen map[time.Time]bool, s *model.Snapshot) bool {
	const enough = 5
	if s != nil {
		seen[s.Time] = true
	}
	return h.d == nil || len(seen) >= enough
}

// remember notes what is so from now on.
func (h *composedHost) remember() {
	m := moment{since: time.Now(), dram: map[int]want{}, daemon: h.d != nil}
	for _, ch := range h.chips {
		m.dram[ch.Device] = h.truth(func(chip int) bool { return h.chips[chip].Device == ch.Device }, model.DRAM)
	}
	h.past = append(h.past, m)
}

func (h *composedHost) daemonStep(do verb) {
	h.Helper()
	if h.d != nil && do != takeover { // what a successor does not take over was not seen from its beginning
		for x := range h.live() {
			x.watched = false
		}
	}
	switch do {
	case ttmondOn:
		h.startDaemon()
		h.server = h.startServer(h.d, 0)
	case ttmondOff:
		h.stopDaemon(syscall.SIGTERM)
		h.bootDaemon(h.d)
	case ttmondDie:
		h.stopDaemon(syscall.SIGKILL)
		h.bootDaemon(h.d)
	case ttmondAway:
		h.stopDaemon(syscall.SIGKILL)
		h.past = append(h.past, moment{since: time.Now(), dram: map[int]want{}})
		time.Sleep(3 * settles) // so long that the history must have a gap
		h.past = append(h.past, moment{since: time.Now()})
		h.bootDaemon(h.d)
	case takeover:
		h.reloadDaemon(h.d)
	}
}

func (h *composedHost) startDaemon() {
	h.Helper()
	if !h.c.Uprobe {
		h.d = h.daemon()
		return
	}
	libraries := []string{filepath.Join(h.fake(), "libtt_metal.so")}
	for _, p := range h.c.Programs {
		if p.Kind == realTTNN {
			libraries = append(libraries, ttnnLibrary(h.stage, p.Release))
		}
	}
	h.d = h.watching(libraries...)
}

// startServer starts the ttmon-server beside a ttmond, which stays whatever becomes
// of that, as a user, and returns where it listens.
func (h *stage) startServer(d *daemon, uid int) (socket string) {
	h.Helper()
	dir := filepath.Dir(d.api)
	if uid != 0 {
		dir = filepath.Join(dir, "server")
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, uid, uid)); err != nil {
			h.Fatal(err)
		}
	}
	socket = filepath.Join(dir, "server.sock")
	line := append(asUser(uid), "env", "HOME="+dir, filepath.Join(bin, "ttmon-server"),
		"--daemon", d.api, "--socket", socket, "--state-dir", filepath.Join(dir, "past"), "--listen", "127.0.0.1:0")
	cmd := h.host.Command(context.Background(), line[0], line[1:]...)
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		h.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			text, _ := os.ReadFile(log.Name())
			h.Errorf("ttmon-server: %v\n%s", err, text)
		}
	})
	return socket
}

func (h *composedHost) stopDaemon(sig syscall.Signal) {
	h.Helper()
	if err := h.d.cmd.Process.Signal(sig); err != nil {
		h.Fatal(err)
	}
	_ = h.d.cmd.Wait()
}

func (h *composedHost) programStep(s step) {
	h.Helper()
	if s.Do == begin {
		h.actors[s.Program] = h.newActor(h.c.Programs[s.Program])
		return
	}
	a := h.actors[s.Program]
	switch s.Do {
	case allocMore, allocElse:
		a.alloc(s.MiB, s.Do == allocElse)
	case allocL1:
		a.allocL1(s.MiB)
	case freeFirst:
		a.free()
	case forkAlloc:
		a.fork(s.MiB)
	case spawn:
		a.spawn()
	case becomes:
		a.exec()
	case killed9:
		a.kill()
	case ends:
		a.end()
	default:
		h.Fatalf("nothing is called %q", s.Do)
	}
}

// live are all processes that there are now.
func (h *composedHost) live() func(yield func(*holder) bool) {
	return func(yield func(*holder) bool) {
		for i := range h.c.Programs {
			if h.actors[i] == nil {
				continue
			}
			for _, x := range h.actors[i].holders() {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// want is a figure as it really is: between two numbers, where it cannot be known
// exactly.
type want struct {
	low, high uint64
	unknown   bool // it cannot be known: an exact figure is wrong
}

func exactly(n uint64) want { return want{low: n, high: n} }

func (w want) String() string {
	switch {
	case w.unknown:
		return fmt.Sprintf("%d or more, not known", w.low)
	case w.low != w.high:
		return fmt.Sprintf("%d to %d", w.low, w.high)
	}
	return fmt.Sprint(w.low)
}

func (w want) plus(o want) want {
	return want{w.low + o.low, w.high + o.high, w.unknown || o.unknown}
}

// on reports whether a process holds what it holds on a chip.
func (h *composedHost) on(x *holder, chip int) bool {
	if x.everyChip {
		return x.has(h.chips[chip].Device)
	}
	return x.chip == chip
}

// truth is what the buffers on some chips asked for.
func (h *composedHost) truth(chips func(int) bool, pool model.Pool) (w want) {
	for x := range h.live() {
		for i := range h.chips {
			if chips(i) && h.on(x, i) {
				w = w.plus(exactly(x.used[pool]))
			}
		}
	}
	return w
}

// occupied is what the blocks on some chips take of DRAM.
func (h *composedHost) occupied(chips func(int) bool) (w want) {
	for x := range h.live() {
		for i := range h.chips {
			if chips(i) && h.on(x, i) {
				w = w.plus(x.occupies())
			}
		}
	}
	return w
}

// occupies is what the blocks of a process take of DRAM: no less than was asked for.
func (x *holder) occupies() want {
	switch {
	case x.inDRAM >= 0:
		return exactly(uint64(x.inDRAM))
	case x.used[model.DRAM] == 0:
		return want{}
	case x.inDRAM == notSaid:
		return want{low: x.used[model.DRAM], high: 2 * x.used[model.DRAM]}
	}
	return want{low: x.used[model.DRAM], unknown: true}
}

// stale is what the dead have left in the accounting of some chips.
func (h *composedHost) stale(chips func(int) bool) (w want) {
	for _, l := range h.left {
		if chips(l.chip) {
			w.high += l.bytes
			if l.certain {
				w.low += l.bytes
			}
		}
	}
	return w
}

// mustBeExact reports whether every process on a device was seen from its
// beginning by a source that a viewer can ask, so that a figure with a doubt
// would hide what is known.
func (h *composedHost) mustBeExact(device int, v viewer) bool {
	if h.c.Boards == "p300c" {
		return false // which of its chips is which may not be known
	}
	any := false
	for x := range h.live() {
		if !x.has(device) || x.other {
			continue
		}
		any = true
		if !x.seenBy(v) {
			return false
		}
	}
	return any
}

// seenBy reports whether a source has seen all allocations of a process that a
// viewer can ask.
func (x *holder) seenBy(v viewer) bool {
	return x.library && v.UID == 0 && !v.Container || x.watched && !v.Direct
}

func (x *holder) has(device int) bool {
	for _, d := range x.devices {
		if d == device {
			return true
		}
	}
	return false
}

// open777 is a new directory that every user can write to.
func (h *stage) open777() string {
	h.Helper()
	dir, err := os.MkdirTemp(bin, "composed-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		h.Fatal(err)
	}
	return dir
}
