package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// scriptedHost is a simulated host with scripted tt-metal processes: what the real
// ones cannot be made to do. They know what they really hold.
type scriptedHost struct {
	*testing.T
	host *sim.Host
	chip uint64 // of device 0; "@" in commands
	live []*metal.Process
}

func newScriptedHost(t *testing.T, o sim.Options) *scriptedHost {
	if o.Boards == "" {
		o.Boards = "p150a"
	}
	c := &scriptedHost{T: t, host: start(t, o)}
	c.chip = chipsIn(t, c.host)[0].ID
	return c
}

// play starts a process and lets it do something. In containers, too, it has
// the device open.
func (c *scriptedHost) play(o metal.Options, commands ...string) *metal.Process {
	c.Helper()
	if o.UID != 0 {
		hermetic.NeedOtherUsers(c)
	}
	o.Command = func(args ...string) *exec.Cmd {
		return c.host.Command(context.Background(), filepath.Join(bin, "ttmon-sim"), append([]string{"metal"}, args...)...)
	}
	p, err := metal.Start(o)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		if err := p.End(); err != nil && !strings.Contains(err.Error(), "Wait was already called") {
			c.Error(err)
		}
	})
	c.live = append(c.live, p)
	c.do(p, append([]string{"device /dev/tenstorrent/0"}, commands...)...)
	return p
}

func (c *scriptedHost) do(p *metal.Process, commands ...string) (r metal.Reply) {
	c.Helper()
	for _, line := range commands {
		var err error
		if r, err = p.Do(strings.ReplaceAll(line, "@", fmt.Sprint(c.chip))); err != nil {
			c.Fatal(err)
		}
	}
	return r
}

// gone takes a process off the list of those that hold something, and waits
// for its end.
func (c *scriptedHost) gone(p *metal.Process) {
	c.Helper()
	for i, q := range c.live {
		if p == q {
			c.live = append(c.live[:i:i], c.live[i+1:]...)
		}
	}
	if err := p.End(); err != nil {
		c.Error(err)
	}
}

func (c *scriptedHost) kill(p *metal.Process) {
	c.Helper()
	if err := p.Kill(); err != nil {
		c.Fatal(err)
	}
	c.gone(p)
}

// truth is what the living really hold.
func (c *scriptedHost) truth() books {
	b := books{}
	for _, p := range c.live {
		for id, held := range p.Held {
			if b[id] == nil {
				b[id] = map[int]bytesBy{}
			}
			b[id][p.PID] = held
		}
	}
	return b
}

// shows compares ttmon smi --json with the truth.
func (c *scriptedHost) shows(ghosts ...string) *model.Snapshot {
	c.Helper()
	s := snapshot(c.T, c.host)
	if err := errors.Join(c.truth().placed(s, chipsIn(c.T, c.host)), c.truth().check(s)); err != nil {
		c.Fatal(err)
	}
	wantGhosts(c.T, s, ghosts...)
	return s
}

// used is what a snapshot says of device 0's DRAM.
func used(s *model.Snapshot) model.Bytes {
	return s.Devices[0].Memory.Pools[model.DRAM].Used
}
