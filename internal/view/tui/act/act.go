// Package act is what the screens ask to be done on the host: signal a
// process, save the configuration, look a process up.
//
// It stands between the screens (top, mem), which return these as effects, and
// the command, which says how they are done.
package act

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
)

// Effects of the screens, and the events that answer them.
type (
	// Kill asks for a signal to processes.
	Kill struct {
		Signal  syscall.Signal
		Targets []Target
	}
	// Killed tells how it went, an error or nil per target.
	Killed struct {
		Kill Kill
		Errs []error
	}
	// Save asks for the configuration to be written.
	Save struct{ Config config.Config }
	// Saved tells where, or why not.
	Saved struct {
		Path string
		Err  error
	}
	// Inspect asks for what a snapshot does not hold about a process.
	Inspect struct{ Target Target }
	// Inspected answers.
	Inspected struct {
		Target    Target
		Environ   []string // NAME=value
		EnvErr    error
		Buffers   []Buffer
		BufferErr error
		Blocks    *blocks.Process // nil: its allocators are not watched
	}
	// Map asks for the allocators of a process alone.
	Map struct{ Target Target }
	// Mapped answers; Blocks is nil if they are not watched.
	Mapped struct {
		Target Target
		Blocks *blocks.Process
	}
	// Load asks for the snapshot that held at a time.
	Load struct{ At time.Time }
	// Loaded answers.
	Loaded struct {
		At       time.Time
		Snapshot *model.Snapshot
		Err      error
	}
)

// Target is a process: a pid alone would be reused some day.
type Target struct {
	PID        int
	StartTicks uint64
	Name       string // for messages
}

// Buffer is one allocation of a process, where a source knows them singly.
type Buffer struct {
	Device int    // kernel index; model.NoDevice if it is none of this host's, or not known
	Chip   string // its name, on a device with several
	Pool   string
	Bytes  uint64
	Age    time.Duration
	Note   string // where it was allocated, if known
}

// ErrUnknown is returned by Actions.Buffers when no source knows them.
var ErrUnknown = errors.New("buffers are known only where ttmond receives allocation events")

// Actions carries the effects out. Fields left nil answer with
// an error that says so.
type Actions struct {
	Kill    func(Target, syscall.Signal) error
	Save    func(config.Config) (path string, err error)
	Environ func(Target) ([]string, error)
	Buffers func(context.Context, Target) ([]Buffer, error)
	Blocks  func(context.Context, Target) (*blocks.Process, error)
	Past    func(context.Context, time.Time) (*model.Snapshot, error)
}

// Do is for tui.Options.
func (a *Actions) Do(ctx context.Context, e tui.Effect) tui.Event {
	switch e := e.(type) {
	case Kill:
		out := Killed{Kill: e}
		for _, t := range e.Targets {
			err := errors.New("signals are not supported here")
			if a.Kill != nil {
				err = a.Kill(t, e.Signal)
			}
			out.Errs = append(out.Errs, err)
		}
		return out
	case Save:
		if a.Save == nil {
			return Saved{Err: errors.New("there is no configuration file here")}
		}
		path, err := a.Save(e.Config)
		return Saved{path, err}
	case Inspect:
		out := Inspected{Target: e.Target, EnvErr: errors.New("not supported here"), BufferErr: ErrUnknown}
		if a.Environ != nil {
			out.Environ, out.EnvErr = a.Environ(e.Target)
		}
		if a.Buffers != nil {
			out.Buffers, out.BufferErr = a.Buffers(ctx, e.Target)
		}
		if a.Blocks != nil {
			out.Blocks, _ = a.Blocks(ctx, e.Target) // most programs are not watched
		}
		return out
	case Map:
		out := Mapped{Target: e.Target}
		if a.Blocks != nil {
			out.Blocks, _ = a.Blocks(ctx, e.Target)
		}
		return out
	case Load:
		if a.Past == nil {
			return Loaded{At: e.At, Err: errors.New("history needs ttmon-server")}
		}
		s, err := a.Past(ctx, e.At)
		return Loaded{e.At, s, err}
	}
	panic("BUG: unknown effect")
}
