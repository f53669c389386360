package widget

import (
	"github.com/ttmon/ttmon/internal/view/tui"
)

// Motion is a way to move in a list or a chart.
type Motion int

// The motions.
const (
	Up Motion = iota
	Down
	Left
	Right
	PageUp
	PageDown
	First
	Last
)

var motions = map[tui.Key]Motion{
	"up": Up, "k": Up, "down": Down, "j": Down, "left": Left, "h": Left, "right": Right, "l": Right,
	"pgup": PageUp, "ctrl-b": PageUp, "ctrl-u": PageUp, "pgdn": PageDown, "ctrl-f": PageDown, "ctrl-d": PageDown,
	"home": First, "g": First, "end": Last, "G": Last,
}

// MotionOf is the motion of a key. The keys are nvtop's, htop's, less's and
// vi's. The letter h is left, as in nvtop; help is under F1 and ?.
func MotionOf(k tui.Key) (Motion, bool) {
	m, ok := motions[k]
	return m, ok
}
