package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/lab/clidocs"
	"github.com/ttmon/ttmon/internal/past/server"
)

// TestManual: docs/man/ttmon-server.8 says what the program says.
func TestManual(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the page is about the system's server: its paths are others")
	}
	clidocs.Manual{Number: "8", Sections: sections}.Check(t, command(), "../../docs/man")
}

func sections(*cobra.Command) []clidocs.Section {
	var cfg bytes.Buffer
	p := server.SystemPaths()
	c := server.Default(p)
	if err := c.Print(&cfg); err != nil {
		panic(err)
	}
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(cfg.String()), "\n", "\n  ")
	return []clidocs.Section{
		{Title: "CONFIGURATION", Prose: "A TOML file. This is all that can be set, with the defaults; --check-config prints what applies on this\nhost. The sections listen, metrics, history, fleet, alerts and remote_write of ttmond.toml, where they were before\nthere was a ttmon-server, are read too; this file takes precedence.\n\n" + indented},
		{Title: "SIGNALS", Terms: []clidocs.Term{
			{Name: "SIGHUP", Meaning: "read the configuration again; a mistake in it changes nothing"},
			{Name: "SIGTERM, SIGINT", Meaning: "exit"},
		}},
		{Title: "EXIT STATUS", Terms: []clidocs.Term{
			{Name: "0", Meaning: "it was asked to exit"}, {Name: "1", Meaning: "it failed"}, {Name: "2", Meaning: "a mistake on the command line or in the configuration"},
		}},
		{Title: "ENVIRONMENT", Terms: []clidocs.Term{
			{Name: "GOMEMLIMIT", Meaning: "how much memory it should get along with"},
			{Name: "GOMAXPROCS", Meaning: "how many cores it uses at once (default: 1, and 2 while it is busy)"},
		}},
		{Title: "FILES", Terms: []clidocs.Term{
			{Name: p.Config, Meaning: "the configuration"},
			{Name: p.Conditions, Meaning: "ttmond's, for the thresholds"},
			{Name: p.Socket, Meaning: "the API socket for ttmon"},
			{Name: p.StateDir, Meaning: "history, events, alerts, runs"},
		}},
	}
}

// The page about ttmon-server knows every flag.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../../docs/ttmon-server.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	command().Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "verbose" && !strings.Contains(page, "--"+f.Name) {
			t.Errorf("--%s is not on the page", f.Name)
		}
	})
}
