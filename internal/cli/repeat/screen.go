package repeat

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/cli/console"
)

// enter makes the terminal ready for drawing in place, if that is what there
// is to do and it is not done yet. It waits for the first drawing: a command
// that fails has not cleared anything.
func (l *loop) enter() {
	if l.screen || l.Interval == 0 || !l.InPlace || l.Out.File == nil || l.Getenv("TERM") == "dumb" {
		return
	}
	if _, _, terminal := console.Size(l.Out.File); !terminal {
		return
	}
	l.screen = true
	l.resized = make(chan os.Signal, 1)
	signal.Notify(l.resized, unix.SIGWINCH)
	l.Out.File.WriteString("\x1b[?25l\x1b[2J") // hide the cursor, clear
}

// leave undoes enter. The last screen stays.
func (l *loop) leave() {
	if l.screen {
		signal.Stop(l.resized)
		l.Out.File.WriteString("\x1b[?25h")
	}
}

// frame turns a screen into what draws it over the one before without
// flicker: home, every line cleared behind its end, all below it cleared, and the
// terminal asked to show it when it is complete. What does not fit is cut off, and
// said.
func frame(screen []byte, rows int) []byte {
	lines := bytes.Split(bytes.TrimSuffix(screen, []byte("\n")), []byte("\n"))
	if rows > 1 && len(lines) > rows-1 {
		left := len(lines) - (rows - 2)
		lines = append(lines[:rows-2:rows-2], fmt.Appendf(nil, " … %d more lines need a taller terminal (ttmon top scrolls)", left))
	}
	out := make([]byte, 0, len(screen)+4*len(lines)+32)
	out = append(out, "\x1b[?2026h\x1b[H"...)
	for _, line := range lines {
		out = append(out, line...)
		out = append(out, "\x1b[K\n"...)
	}
	return append(out, "\x1b[J\x1b[?2026l"...)
}
