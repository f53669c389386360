// Package console is what a command of ttmon prints to: the standard output or
// a file, with colours and characters that the terminal shows.
package console

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/view/text"
)

// Console is what a run of the program prints to, and the flags that say how.
type Console struct {
	Stdout, Stderr *os.File
	Getenv         func(string) string
	Color          string // auto, always or never
	ASCII          bool
}

// Size is that of the terminal behind f; ok is false if there is none.
func Size(f *os.File) (columns, rows int, ok bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(ws.Col), int(ws.Row), true
}

// TextOptions say how to print to f; nil is a file.
func (c *Console) TextOptions(f *os.File) (text.Options, error) {
	o := text.Options{Version: version.Version}
	columns, _, terminal := 0, 0, false
	if f != nil {
		columns, _, terminal = Size(f)
	}
	if f == c.Stdout {
		o.Width = columns
		if columns == 0 { // not a terminal, or one that does not know its size
			o.Width, _ = strconv.Atoi(c.Getenv("COLUMNS"))
			if o.Width <= 0 && terminal {
				o.Width = 80
			}
		}
	}
	switch c.Color {
	case "always":
		o.Color = true
	case "never":
	case "auto":
		o.Color = terminal && c.Getenv("NO_COLOR") == "" && c.Getenv("TERM") != "dumb"
	default:
		return o, exit.Usage("--color=%s: one of auto, always, never", c.Color)
	}
	o.ASCII = c.UseASCII()
	return o, nil
}

// ASCIILocale reports whether the locale says, in so many words, that it is not
// UTF-8. No locale at all says nothing: in containers it is the rule, and
// their terminals show UTF-8 all the same.
func ASCIILocale(getenv func(string) string) bool {
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

// UseASCII reports whether screens are to be drawn with ASCII only.
func (c *Console) UseASCII() bool { return c.ASCII || ASCIILocale(c.Getenv) }

// NeedsTerminal is the error of a screen that has no terminal to draw on.
func (c *Console) NeedsTerminal(name string) error {
	const instead = "for a pipe or a log there are ttmon smi -l, ttmon dmon and ttmon smi --json"
	if _, _, ok := Size(c.Stdout); !ok {
		return exit.Usage("%s needs a terminal: %s", name, instead)
	}
	if term := c.Getenv("TERM"); term == "dumb" || term == "" {
		return exit.Usage("%s needs a terminal that can place its cursor, and TERM=%s cannot: %s", name, term, instead)
	}
	return nil
}
