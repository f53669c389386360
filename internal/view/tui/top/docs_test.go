package top

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/filter"
	"github.com/ttmon/ttmon/internal/view/tui/theme"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

const docsPath = "../../../../docs/top.md"

// TestDocs keeps docs/top.md in step with the program: its screens are drawn
// by it, its tables are its tables.
func TestDocs(t *testing.T) {
	golden.Check(t, docsPath, []byte(docs(t)))
}

func docs(t *testing.T) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	screen := func(st *stage) { say("```\n%s```\n", st.draw()) }
	st := open(t, 2, 120, 40)
	say("# ttmon top\n")
	say("Devices, charts over time and processes on one screen that stays open. The keys are those of nvtop and htop; " +
		"F1 or `?` lists them, the mouse works too. The figures below are invented.\n")
	screen(st)
	say("Thirty-two chips fit into 80 by 24: a cell each, in the order of the trays. `v` chooses how much room devices get, `w` puts the worst first.\n")
	screen(open(t, 32, 80, 24))
	say("`C` puts the charts on the whole screen; arrows move the cursor, `+` and `-` zoom, `,` and `.` go back and on, ▲ marks events.\n")
	screen(open(t, 4, 100, 24).keys("C", "left", "left", "left", "left", "left", "left", "left", "left"))
	say("`m` shows the memory of the chips, as `ttmon mem` does.\n")
	screen(open(t, 4, 100, 24).keys("m", "enter"))
	say("## Keys\n")
	for _, sec := range []struct {
		title string
		list  []binding
	}{{"Main page", onMain()}, {"Charts in focus", chartKeys()}, {"Everywhere", everywhere()}} {
		say("| %s | |\n|---|---|", sec.title)
		for _, b := range sec.list {
			var names []string
			for _, k := range b.keys {
				names = append(names, "`"+widget.KeyName(k)+"`")
			}
			say("| %s | %s |", strings.Join(names, " "), b.help)
		}
		say("")
	}
	say("Arrows, `h` `j` `l`, PgUp, PgDn, Home, End, `g` and `G` move; `k` does, too, except on the main page, where it is F9.\n")
	say("## Filter\n\n`/` filters processes, `--filter` and `top.processes.filter` start with a filter:\n")
	say("```\nuser=root dram>1G device=3 cmd~llama\n(user=alice or user=bob) and not time<1h\n```\n")
	say("Terms side by side must all hold; `and`, `or`, `not`, `!` and parentheses do what they say. `=` compares whole values and knows `*`, lists and ranges " +
		"(`user=root,al*`, `device=0-3`), `~` searches with a regular expression, a word alone is searched for in all text. 1G is a GiB, 1GB is 10⁹ bytes; " +
		"90s, 5m, 2h30m and 3d are lengths of time. `dram=?` finds what is not known; no other comparison matches that.\n")
	say("| Field | Kind | |\n|---|---|---|")
	kinds := map[filter.Kind]string{filter.Text: "text", filter.Number: "number", filter.Bytes: "bytes", filter.Seconds: "time"}
	for _, f := range filterFields() {
		name := "`" + f.Name + "`"
		for _, a := range f.Aliases {
			name += " `" + a + "`"
		}
		say("| %s | %s | %s |", name, kinds[f.Kind], f.Help)
	}
	say("\nThe fields are also the columns to show (`top.processes.columns`) and to sort by (F6).\n")
	say("## Charts\n\n| Metric | |\n|---|---|")
	for _, g := range st.s.gauges.All() {
		say("| `%s` | %s |", g.Name, g.Help)
	}
	say("\nA chart is one of these; several of one unit share a chart as `pcie_to+pcie_from`, a line each, of the devices together; `power@0/2` is a chart of two devices.\n")
	say("## Themes\n\n`--theme NAME` or `display.theme`: %s; `auto` is dark or light, as the terminal says. One of your own is a file `NAME.theme` in the directory "+
		"`themes` beside the configuration, or any path with a `/` in it:\n", strings.Join(theme.Names(), ", "))
	say("```\nbase = dark                 // begin with what another theme has\ntext = #c8ccd4 on #14161b   // #rrggbb, a number of the palette, a name, or default\n" +
		"warn = bold #e6c35c         // bold, dim, underline, reverse\nseries = #5cc8d7 #c792ea    // lines of charts\nramp = #1f3a5f #5cc8d7      // filled areas and maps, from little to much\n" +
		"tint = #141b26 #20415f      // behind the lines of charts, on terminals with every colour\n```\n")
	var styles []string
	for st := range cells.Series0 {
		styles = append(styles, "`"+st.String()+"`")
	}
	say("The styles are %s. A terminal with 256 or 16 colours shows the nearest; NO_COLOR means mono.", strings.Join(styles, ", "))
	say("\n## Configuration\n\n`$XDG_CONFIG_HOME/ttmon/config.toml`, by default `~/.config/ttmon/config.toml`. F2 shows every setting, F12 writes what was changed " +
		"and leaves the rest of the file alone. A variable `TTMON_TOP_INTERVAL` and the like comes after the file, flags come last.\n")
	say("| Setting | Default | |\n|---|---|---|")
	def := config.Default()
	for _, o := range config.Options() {
		help := o.Help
		if o.Choices != nil {
			help += " One of: " + strings.Join(o.Choices, ", ") + "."
		}
		say("| `%s` | %s | %s |", o.Path, o.Get(&def), strings.ReplaceAll(help, "|", `\|`))
	}
	return b.String()
}
