// Command picture draws a screen of ttmon as SVG, from the made-up hosts of
// the golden screens: for documents, and to look at a change before it lands.
//
//	go run ./tools/picture -size 120x40 -devices 3 -theme dusk >top.svg
//	go run ./tools/picture -keys tab,enter >device.svg
//	go run ./tools/picture -text internal/view/why/testdata/fragmented.colour.txt >why.svg
//	go run ./tools/picture -film tools/picture/first-look.film -bin bin -o first-look.svg
//
// The third draws what a command printed, with its colours. The last one records a real terminal on a simulated host, as an animation.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/picture"
	"github.com/ttmon/ttmon/internal/view/tui/theme"
	"github.com/ttmon/ttmon/internal/view/tui/top"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

func main() {
	screen := flag.String("screen", "top", "top or mem")
	devices := flag.Int("devices", 3, "of the host")
	size := flag.String("size", "120x36", "columns and rows")
	name := flag.String("theme", "dusk", "a theme, by its name or file")
	keys := flag.String("keys", "", "pressed, separated by commas")
	seconds := flag.Int("seconds", 300, "of history")
	set := flag.String("set", "", "options, separated by blanks: top.charts.by=device")
	text := flag.String("text", "", "draw this `FILE`, which a command printed, with its colours")
	script := flag.String("film", "", "record an animation by this `SCRIPT`; needs tmux")
	bin := flag.String("bin", "bin", "the `DIR` of ttmon's programs, for a film")
	output := flag.String("o", "film.svg", "the `FILE` of a film")
	flag.Parse()
	time.Local = time.UTC
	if *script != "" {
		if err := film(*script, absolute(*bin), absolute(*output)); err != nil {
			fmt.Fprintln(os.Stderr, "picture:", err)
			os.Exit(1)
		}
		return
	}
	if *text != "" {
		if err := drawText(*text); err != nil {
			fmt.Fprintln(os.Stderr, "picture:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(*screen, *devices, *size, *name, *keys, *seconds, *set); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// drawText draws what a command printed, as wide and high as it is.
func drawText(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := strings.TrimRight(string(b), "\n")
	size := termSize{h: strings.Count(text, "\n") + 1}
	for line := range strings.Lines(text) {
		size.w = max(size.w, words.Width(colours.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")))
	}
	_, err = os.Stdout.Write(picture.Capture(text, size.w, size.h, filmFG, filmBG).SVG())
	return err
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}

func run(screen string, devices int, size, name, keys string, seconds int, set string) error {
	t, err := theme.Load(name)
	if err != nil {
		return err
	}
	var w, h int
	if _, err := fmt.Sscanf(size, "%dx%d", &w, &h); err != nil {
		return fmt.Errorf("-size %s: columns and rows, such as 80x24", size)
	}
	cfg := config.Default()
	cfg.Display.Corners = "round"
	for _, pair := range strings.Fields(set) {
		path, value, _ := strings.Cut(pair, "=")
		o := config.OptionAt(path)
		if o == nil {
			return fmt.Errorf("there is no option %q", path)
		}
		if err := o.Set(&cfg, value); err != nil {
			return err
		}
	}
	app, err := open(screen, cfg)
	if err != nil {
		return err
	}
	app.Update(tui.Resize{W: w, H: h})
	for s := range seconds {
		app.Update(tui.Sample{Snapshot: tuitest.Host(devices, s)})
	}
	g := cells.NewGrid(w, h)
	app.Draw(g)
	if keys != "" {
		for k := range strings.SplitSeq(keys, ",") {
			app.Update(tui.Key(k))
			g.Clear()
			app.Draw(g)
		}
	}
	_, err = os.Stdout.Write(picture.SVG(g, t, cfg.Display.Corners == "round"))
	return err
}

func open(screen string, cfg config.Config) (tui.App, error) {
	if screen == "top" || screen == "mem" {
		return top.New(top.Options{Config: cfg, Memory: screen == "mem"})
	}
	return nil, fmt.Errorf("-screen %s: top or mem", screen)
}
