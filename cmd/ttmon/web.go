package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/node/api/client"
)

// webCmd is the command ttmon web with its flags.
type webCmd struct {
	*app
	open, public, start bool
}

func newWeb(a *app) *cobra.Command {
	w := &webCmd{app: a}
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Print the address of the web page, with a login for you",
		Long: `Prints the address of ttmon-server's page with a ticket in it, which makes the page
show what you may see: everybody's sums, and the blocks, call sites and names of your
own processes; to root everything. The ticket is made by ttmond, good once, for two
minutes; the session behind it lasts for 12 hours in that tab of the browser. Without
a ticket the page shows what any user of the host sees.

Where no ttmon-server runs, --start starts one as yourself. Without a ttmond it shows
what you can see: the boards, and the memory of your own processes.

From another machine: ssh -L 9108:127.0.0.1:9108 HOST 'ttmon web; cat', and open the
address there; the connection lasts until Ctrl-D.`,
		Example: `  ttmon web
  ttmon web --open
  ttmon web --start
  ttmon web --public`,
		RunE: func(*cobra.Command, []string) error { return w.run() },
	}
	f := cmd.Flags()
	f.BoolVar(&w.open, "open", false, "open it in the browser (xdg-open)")
	f.BoolVar(&w.public, "public", false, "print the plain address, without a login")
	f.BoolVar(&w.start, "start", false, "start a ttmon-server as your user if none runs")
	return cmd
}

func (w *webCmd) run() error {
	if w.where.Direct {
		return exit.Usage("--direct cannot be used here: the web page is served by ttmon-server")
	}
	h, err := host.Open(w.where)
	if err != nil {
		return err
	}
	path, timeout := h.Server(), 5*time.Second
	if path == "" || path == h.Socket() && w.start {
		if path, err = w.startServer(h); err != nil {
			return err
		}
		timeout = startTimeout // it may still be opening its history
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	address, err := w.address(ctx, h, path)
	if err != nil {
		return err
	}
	if err := w.Output("").Write([]byte(address + "\n")); err != nil || !w.open {
		return err
	}
	return openBrowser(address)
}

// address returns that of the page, with a ticket unless --public.
func (w *webCmd) address(ctx context.Context, h *host.Host, path string) (string, error) {
	c := client.New(path)
	defer c.Close()
	page, err := c.Page(ctx)
	if err != nil {
		return "", exit.With(exit.Internal, "%w", err)
	}
	t, err := c.Ticket(ctx)
	switch {
	case errors.Is(err, client.ErrForbidden): // this server follows a ttmond, which issues tickets
		daemon := client.New(h.Socket())
		defer daemon.Close()
		if t, err = daemon.Ticket(ctx); err != nil {
			return "", exit.With(exit.Internal, "%w", err)
		}
	case err != nil:
		return "", exit.With(exit.Internal, "%w", err)
	case path != h.Socket():
		fmt.Fprintln(w.Stderr, "no ttmond runs here: the page shows what you can see, the boards and the memory of your own processes")
	}
	if page == "" && path == h.Socket() {
		return "", exit.With(exit.Unsupported, "%w", errNoPage)
	}
	if page == "" {
		return "", exit.With(exit.Unsupported, "this ttmon-server serves no web page: listen.address is off, or the address is in use (see its log)")
	}
	if w.public {
		return page, nil
	}
	return page + "#ticket=" + t.Ticket, nil
}

// startServer starts a ttmon-server as this user, if --start is given, and returns its
// socket as soon as it serves the page.
func (w *webCmd) startServer(h *host.Host) (string, error) {
	if !w.start {
		return "", exit.With(exit.Unsupported, "%w", errNoPage)
	}
	program, err := findServer()
	if err != nil {
		return "", exit.With(exit.Unsupported, "--start: %w", err)
	}
	log, err := w.serverLog()
	if err != nil {
		return "", exit.With(exit.Internal, "--start: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(program)
	if h.Named {
		cmd.Args = append(cmd.Args, "--daemon", h.Sockets[0], "--socket", h.Servers[0])
	}
	cmd.Stderr, cmd.Dir = log, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return "", exit.With(exit.Internal, "--start: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-exited:
			return "", exit.With(exit.Internal, "--start: ttmon-server exited (%v); see %s", err, log.Name())
		default:
		}
		if path := h.Server(); path != h.Socket() && servesPage(path) {
			fmt.Fprintf(w.Stderr, "started ttmon-server, pid %d; it runs until you stop it: kill %[1]d\n", cmd.Process.Pid)
			return path, nil
		}
	}
	return "", exit.With(exit.Internal, "--start: ttmon-server serves no page after %v; see %s", startTimeout, log.Name())
}

// startTimeout is how long a ttmon-server may take to serve the page.
const startTimeout = 30 * time.Second

var errNoPage = errors.New("no ttmon-server is running, so there is no web page: systemctl start ttmon-server, or ttmon web --start for one of your own")

func servesPage(path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c := client.New(path)
	defer c.Close()
	page, err := c.Page(ctx)
	return err == nil && page != ""
}

// serverLog opens the log of the ttmon-server that this command starts.
func (w *webCmd) serverLog() (*os.File, error) {
	dir := w.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(w.Getenv("HOME"), ".local", "state")
	}
	if err := os.MkdirAll(filepath.Join(dir, "ttmon"), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, "ttmon", "ttmon-server.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
}

// serveFleet runs ttmon-server in place of ttmon, which stays small by not having the
// page.
func (f *fleetCmd) serveFleet() error {
	args := []string{"ttmon-server", "fleet", "--prometheus", f.url, "--listen", f.serve}
	if f.label != "" {
		args = append(args, "--host-label", f.label)
	}
	if f.nodeURL != "" {
		args = append(args, "--node-url", f.nodeURL)
	}
	if f.webConfig != "" {
		args = append(args, "--web-config", f.webConfig)
	}
	return becomeServer(args)
}

// becomeServer runs ttmon-server in place of this program.
func becomeServer(args []string) error {
	path, err := findServer()
	if err != nil {
		return exit.With(exit.Unsupported, "--serve: %w", err)
	}
	return exit.With(exit.Internal, "starting %s: %w", path, unix.Exec(path, args, os.Environ()))
}

// findServer finds ttmon-server: the one beside this program, which is of the same
// release, or the one in $PATH.
func findServer() (string, error) {
	const name = "ttmon-server"
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), name); unix.Access(beside, unix.X_OK) == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("this needs ttmon-server, which serves the page: install the package ttmon-server, or the archive of the release (%w)", err)
	}
	return path, nil
}
