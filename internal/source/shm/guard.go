package shm

import (
	"bytes"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// guard runs what may block for as long as somebody else likes: files below
// /proc/<pid> that are served under the process's memory lock, and whatever a
// container has mounted on its /dev/shm. All reads of one sweep share one
// amount of patience, and a process that did not answer is not asked again
// before it has. The waits are killable, so they never keep us from exiting.
type guard struct {
	patience time.Duration
	left     time.Duration // of patience, in this sweep
	stuck    map[identity]<-chan struct{}
}

// usual is how long a read takes that nobody holds up. It costs no patience,
// and is granted when there is none left.
const usual = 5 * time.Millisecond

func newGuard(patience time.Duration) *guard {
	return &guard{patience: patience, stuck: map[identity]<-chan struct{}{}}
}

// begin starts a sweep.
func (g *guard) begin() {
	g.left = g.patience
	for id, done := range g.stuck {
		select {
		case <-done:
			delete(g.stuck, id)
		default:
		}
	}
}

// run calls f, about process id, in a goroutine and waits for it while
// patience lasts. f must own everything it touches: after an ErrTimeout it
// goes on alone.
func (g *guard) run(id identity, f func()) error {
	if _, ok := g.stuck[id]; ok {
		return hostfs.ErrTimeout
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	begun := time.Now()
	timer := time.NewTimer(max(g.left, usual))
	defer timer.Stop()
	select {
	case <-done:
		g.left -= max(0, time.Since(begun)-usual)
		return nil
	case <-timer.C:
		g.left = 0
		g.stuck[id] = done
		return hostfs.ErrTimeout
	}
}

// look runs f on a directory /proc/<pid> of its own, under guard.
func (g *guard) look(p *process, f func(dir hostfs.Dir)) error {
	if _, ok := g.stuck[p.identity]; ok {
		return hostfs.ErrTimeout
	}
	dir, err := p.dir.Dup()
	if err != nil {
		return err
	}
	return g.run(p.identity, func() {
		defer dir.Close()
		f(dir)
	})
}

// readMaps looks up which regions a process maps, and its tt-metal library.
func (g *guard) readMaps(p *process, now time.Time) {
	var maps mappings
	var readErr error
	p.mapsAt = now
	err := g.look(p, func(dir hostfs.Dir) { maps, readErr = scanMaps(dir, "maps") })
	if err == nil && readErr == nil && maps.empty {
		if thread := p.livingThread(); thread != "" {
			err = g.look(p, func(dir hostfs.Dir) { maps, readErr = scanMaps(dir, thread+"/maps") })
		}
	}
	if err != nil {
		p.maps, p.mapsErr = mappings{}, err // maps is the lost reader's now
		return
	}
	p.maps, p.mapsErr = maps, readErr
}

// maxMaps is more than a process with the kernel's default limit of 65530
// mappings shows.
const maxMaps = 16 << 20

func scanMaps(dir hostfs.Dir, name string) (m mappings, err error) {
	for size := 256 << 10; ; size *= 4 {
		buf := make([]byte, size)
		n, err := dir.Read(name, buf)
		if err != nil {
			return mappings{}, err
		}
		if n == size && size < maxMaps {
			continue // it is longer: begin again with more room
		}
		m.empty = n == 0
		for line := range bytes.Lines(buf[:n]) {
			m.add(bytes.TrimSuffix(line, []byte{'\n'}))
		}
		return m, nil
	}
}
