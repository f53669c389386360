package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/version"
	"github.com/ttmon/ttmon/internal/view/text"
)

// size is that of the terminal behind f; ok is false if there is none.
func size(f *os.File) (columns, rows int, ok bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(ws.Col), int(ws.Row), true
}

// textOptions say how to print to f; nil is a file.
func (a *app) textOptions(f *os.File) (text.Options, error) {
	o := text.Options{Version: version.Version}
	columns, _, terminal := 0, 0, false
	if f != nil {
		columns, _, terminal = size(f)
	}
	if f == a.stdout {
		o.Width = columns
		if columns == 0 { // not a terminal, or one that does not know its size
			o.Width, _ = strconv.Atoi(a.getenv("COLUMNS"))
			if o.Width <= 0 && terminal {
				o.Width = 80
			}
		}
	}
	switch a.color {
	case "always":
		o.Color = true
	case "never":
	case "auto":
		o.Color = terminal && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
	default:
		return o, usage("--color=%s: one of auto, always, never", a.color)
	}
	o.ASCII = a.ascii || terminal && asciiLocale(a.getenv)
	return o, nil
}

// asciiLocale tells whether the locale says, in so many words, that it is not
// UTF-8. No locale at all says nothing: in containers it is the rule, and
// their terminals show UTF-8 all the same.
func asciiLocale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		v := getenv(name)
		if v == "" {
			continue
		}
		v = strings.ToLower(strings.ReplaceAll(v, "-", ""))
		return !strings.Contains(v, "utf8")
	}
	return false
}
