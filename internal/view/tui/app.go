package tui

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// App is a screen.
type App interface {
	// Update takes in one event and returns what is to be done about it.
	Update(Event) []Effect
	// Draw draws the state onto a cleared grid. It may keep where it drew
	// things, for the mouse, and changes nothing else.
	Draw(*cells.Grid)
	// Appearance is how the screen is shown.
	Appearance() Appearance
}

// Appearance is the part of the state that concerns the terminal as a whole.
type Appearance struct {
	Theme string // auto, or a theme by its name or path
	Mouse bool
	Round bool // round corners
}

// Source gives snapshots: a collector in this process, a daemon, or a ttmon
// on another host. Next is called once per interval and may block. An
// error is shown, and Next is called again.
type Source interface {
	Next(ctx context.Context) (*model.Snapshot, error)
}

// Event is something that happened: Key, Mouse, Paste, Resize, Sample, Lost,
// or whatever an App's own effects answer.
type Event any

// Sample is a new snapshot.
type Sample struct{ *model.Snapshot }

// Jumped says that the source went to another time: the samples that follow do
// not come after those that were seen, and what was learned from these is to be
// forgotten. At is where it went; charts have been filled for it.
type Jumped struct{ At time.Time }

// Lost says that the source did not answer.
type Lost struct {
	Err error
	At  time.Time
}

// Resize is the size of the window; it comes first of all events.
type Resize struct{ W, H int }

// Paste is text pasted into the terminal. It never counts as keys:
// the contents of a clipboard must not kill a process.
type Paste string

// Mouse is a click, a drag or a turn of the wheel at a cell of the grid.
type Mouse struct {
	X, Y   int
	Action Action
}

// Action is what the mouse did.
type Action int

// Mouse actions.
const (
	Press      Action = iota // left button
	RightPress               // right button
	Drag                     // moved with the left button down
	Release
	WheelUp
	WheelDown
)

// Effect is something for the loop to do. Those below are known to the loop;
// all others go to Options.Do.
type Effect any

// Effects of the loop.
type (
	// Quit ends the program.
	Quit struct{}
	// Suspend stops it until the shell continues it.
	Suspend struct{}
	// Repaint sends every cell again.
	Repaint struct{}
	// Refresh asks the source now instead of at the next interval.
	Refresh struct{}
	// SetInterval changes how often the source is polled.
	SetInterval time.Duration
	// After sends an event later.
	After struct {
		Wait  time.Duration
		Event Event
	}
)
