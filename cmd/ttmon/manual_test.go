package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/lab/clidocs"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/view/tui/top"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// sections is what the manual pages of ttmon have beside flags and examples.
func sections(cmd *cobra.Command) []clidocs.Section {
	switch cmd.CommandPath() {
	case "ttmon":
		return []clidocs.Section{exitStatus(), environment(false), files(false)}
	case "ttmon top":
		return []clidocs.Section{keys(top.Keys()), configuration("display.", "top."), exitStatus(), environment(true), files(true)}
	case "ttmon mem":
		return []clidocs.Section{keys(top.MemoryKeys()), configuration("display.", "top.interval", "top.charts."), exitStatus(), environment(true), files(true)}
	case "ttmon smi":
		return []clidocs.Section{environment(false), files(false)}
	}
	return nil
}

func keys(list []widget.Binding) clidocs.Section {
	s := clidocs.Section{Title: "KEYS"}
	for _, b := range list {
		var names []string
		for _, k := range b.Keys {
			names = append(names, widget.KeyName(k))
		}
		s.Terms = append(s.Terms, clidocs.Term{Name: strings.Join(names, ", "), Meaning: b.Help})
	}
	return s
}

func configuration(prefixes ...string) clidocs.Section {
	s := clidocs.Section{
		Title: "CONFIGURATION",
		Prose: "Settings are in a TOML file; F2 in ttmon top shows them all, F12 writes what was changed. A variable of the\n" +
			"environment comes after the file (top.interval is TTMON_TOP_INTERVAL), flags come last.",
	}
	def := config.Default()
	for _, o := range config.Options() {
		for _, p := range prefixes {
			if !strings.HasPrefix(o.Path, p) {
				continue
			}
			meaning := o.Help
			if o.Choices != nil {
				meaning += " One of: " + strings.Join(o.Choices, ", ") + "."
			}
			if v := o.Get(&def); v != "" {
				meaning += " Default: " + v + "."
			}
			s.Terms = append(s.Terms, clidocs.Term{Name: o.Path, Meaning: meaning})
		}
	}
	return s
}

func exitStatus() clidocs.Section {
	s := clidocs.Section{Title: "EXIT STATUS", Prose: "Those of checks (check, doctor, daemon status) differ, and are on their pages."}
	for _, c := range []struct {
		code    int
		meaning string
	}{
		{exit.OK, "all is well"},
		{exit.Internal, "something failed that should not"},
		{exit.BadArgument, "a bad argument, a mistake in the configuration, or no terminal for a screen"},
		{exit.Unsupported, "not offered by this driver, or not ttmon's business"},
		{exit.Denied, "no permission"},
		{exit.NoDevice, "no device"},
		{exit.NoDriver, "the driver is not loaded"},
		{exit.Trouble, "a device that was shown is hung or lost; the output was printed"},
	} {
		s.Terms = append(s.Terms, clidocs.Term{Name: strconv.Itoa(c.code), Meaning: c.meaning})
	}
	return s
}

func environment(screen bool) clidocs.Section {
	s := clidocs.Section{Title: "ENVIRONMENT", Terms: []clidocs.Term{
		{Name: "TTMON_SOCKET", Meaning: "the socket of the ttmond to ask; nothing else will do then"},
		{Name: "TTMON_TIMEOUT", Meaning: "how long to wait for what does not answer, such as 5s; 700ms by default"},
		{Name: "NO_COLOR", Meaning: "set to anything: no colours"},
		{Name: "LC_ALL, LC_CTYPE, LANG", Meaning: "a locale that is not UTF-8: nothing but ASCII is drawn"},
		{Name: "COLUMNS", Meaning: "columns to print for, where the output is no terminal"},
		{Name: "XDG_RUNTIME_DIR", Meaning: "where a ttmond of the user's own listens: ttmon/ttmond.sock below it"},
	}}
	if screen {
		s.Terms = append(s.Terms,
			clidocs.Term{Name: "TERM, COLORTERM", Meaning: "what the terminal can do; COLORTERM=truecolor for every colour"},
			clidocs.Term{Name: "COLORFGBG", Meaning: "set by some terminals: tells the theme auto whether the background is light"},
			clidocs.Term{Name: "TTMON_CONFIG", Meaning: "the configuration file, instead of the one below"},
			clidocs.Term{Name: "XDG_CONFIG_HOME", Meaning: "where configuration is, instead of ~/.config"})
	}
	return s
}

func files(screen bool) clidocs.Section {
	s := clidocs.Section{Title: "FILES"}
	if screen {
		s.Terms = append(s.Terms,
			clidocs.Term{Name: "~/.config/ttmon/config.toml", Meaning: "the settings"},
			clidocs.Term{Name: "~/.config/ttmon/themes/NAME.theme", Meaning: "themes of the user's own: lines such as warn = bold #e6c35c; base = dark begins with another one"})
	}
	s.Terms = append(s.Terms,
		clidocs.Term{Name: "/sys/class/tenstorrent, /sys/class/hwmon, /proc/driver/tenstorrent", Meaning: "what the driver shows; device nodes are never opened"},
		clidocs.Term{Name: "/dev/shm/tt_device_*_memory", Meaning: "tt-metal's accounting; it is only read"},
		clidocs.Term{Name: "/run/ttmon/ttmond.sock", Meaning: "the socket of the system's ttmond"})
	return s
}

// Manual pages under the names by which people call the program for one of its
// commands.
func TestAliasPages(t *testing.T) {
	for _, other := range otherNames {
		page := "ttmon-" + other.command + ".1"
		if other.program != "" {
			page = other.program + ".8"
		}
		if _, err := os.Stat("../../docs/man/" + page); err != nil {
			t.Error(err)
		}
		golden.Check(t, "../../docs/man/aliases/"+other.name+".1", []byte(".so man"+page[len(page)-1:]+"/"+page+"\n"))
	}
}
