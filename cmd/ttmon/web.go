package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/exit"
	"github.com/ttmon/ttmon/internal/host"
)

// webCmd is the command ttmon web with its flags.
type webCmd struct {
	*app
	open, public bool
}

func newWeb(a *app) *cobra.Command {
	w := &webCmd{app: a}
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Prints the address of the page that ttmond serves, for you",
		Long: `Prints the address of ttmond's page with a ticket in it, which makes the page show
what you may see: everybody's sums, and the blocks, call sites and names of your
own processes; to root everything. The ticket is good once, for two minutes; the
session behind it lasts for 12 hours in that tab of the browser. Without a ticket
the page shows what any user of the host sees.

From another machine: ssh -L 9108:127.0.0.1:9108 HOST, and open the address there.`,
		Example: `  ttmon web
  ttmon web --open
  ttmon web --public`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return w.run() },
	}
	f := cmd.Flags()
	f.BoolVar(&w.open, "open", false, "open it in the browser (xdg-open)")
	f.BoolVar(&w.public, "public", false, "without a ticket")
	return cmd
}

func (w *webCmd) run() error {
	c, err := host.Daemon(w.where, errors.New("no ttmond runs here, and ttmond serves the page: systemctl start ttmond"))
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	t, err := c.Ticket(ctx)
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	if t.Address == "" {
		return exit.With(exit.Unsupported, "this ttmond serves no page (listen.address is off, or its address is taken: see its log)")
	}
	address := t.Address
	if !w.public {
		address += "#ticket=" + t.Ticket
	}
	if w.open {
		if err := exec.Command("xdg-open", address).Start(); err != nil {
			return exit.With(exit.Internal, "opening the browser: %w; the address is %s", err, address)
		}
	}
	return w.Output("").Write([]byte(address + "\n"))
}

// serveFleet becomes ttmond, which has the page: ttmon itself stays light.
func (f *fleetCmd) serveFleet() error {
	args := []string{"ttmond", "fleet", "--prometheus", f.url, "--listen", f.serve}
	if f.label != "" {
		args = append(args, "--host-label", f.label)
	}
	if f.nodeURL != "" {
		args = append(args, "--node-url", f.nodeURL)
	}
	if f.webConfig != "" {
		args = append(args, "--web-config", f.webConfig)
	}
	return becomeTTMond(args)
}

// becomeTTMond runs ttmond in place of this program: the one beside it, which is
// of the same release, or the one in $PATH.
func becomeTTMond(args []string) error {
	path, err := exec.LookPath("ttmond")
	if self, serr := os.Executable(); serr == nil {
		if beside := filepath.Join(filepath.Dir(self), "ttmond"); unix.Access(beside, unix.X_OK) == nil {
			path, err = beside, nil
		}
	}
	if err != nil {
		return exit.With(exit.Unsupported, "--serve needs ttmond, which serves the page: %w", err)
	}
	return exit.With(exit.Internal, "starting %s: %w", path, unix.Exec(path, args, os.Environ()))
}
