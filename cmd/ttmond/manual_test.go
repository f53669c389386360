package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/lab/clidocs"
	"github.com/ttmon/ttmon/internal/node"
)

// TestManual: docs/man/ttmond.8 says what the program says.
func TestManual(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the page is about root's ttmond: its paths are others")
	}
	clidocs.Manual{Number: "8", Sections: sections}.Check(t, command(), "../../docs/man")
}

// command is the command line as documentation is made of it.
func command() *cobra.Command {
	cmd := &cobra.Command{Use: "ttmond", Short: "node daemon: tracks allocations and serves all local users", Long: about, Run: func(*cobra.Command, []string) {}}
	cmd.Flags().AddFlagSet(new(flags).flagSet())
	return cmd
}

func sections(*cobra.Command) []clidocs.Section {
	var cfg bytes.Buffer
	c := node.Default()
	if err := c.Print(&cfg); err != nil {
		panic(err)
	}
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(cfg.String()), "\n", "\n  ")
	return []clidocs.Section{
		{Title: "CONFIGURATION", Prose: "A TOML file. This is all that can be set, with what holds where nothing is said; --check-config prints\nwhat holds on this host.\n\n" + indented},
		{Title: "SIGNALS", Terms: []clidocs.Term{
			{Name: "SIGHUP", Meaning: "execute the program again in the same process, and read the configuration; a mistake in it changes nothing"},
			{Name: "SIGTERM, SIGINT", Meaning: "end; the connections of clients are kept by a small process until ttmond starts again"},
		}},
		{Title: "EXIT STATUS", Terms: []clidocs.Term{
			{Name: "0", Meaning: "it was asked to end"}, {Name: "1", Meaning: "it failed"}, {Name: "2", Meaning: "a mistake on the command line or in the configuration"},
		}},
		{Title: "ENVIRONMENT", Terms: []clidocs.Term{
			{Name: "NOTIFY_SOCKET, LISTEN_FDS", Meaning: "set by systemd, which is told when ttmond is ready and keeps its sockets over a restart"},
			{Name: "GOMEMLIMIT", Meaning: "how much memory it should get along with"},
			{Name: "GOMAXPROCS", Meaning: "how many cores it uses at once (default: 1, and 2 while it is busy)"},
		}},
		{Title: "FILES", Terms: []clidocs.Term{
			{Name: "/etc/ttmon/ttmond.toml", Meaning: "the configuration of root's"},
			{Name: c.API.Socket, Meaning: "where ttmon asks"},
			{Name: c.Alloc.Socket, Meaning: "where instrumented programs report"},
			{Name: c.StateDir, Meaning: "history and events"},
		}},
	}
}
