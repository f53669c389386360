package main

import (
	"context"
	"encoding/json"
	"errors"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/why"
)

// whyCmd is the command ttmon why with its flags.
type whyCmd struct {
	*app
	list, json, stack bool
	html              string
	top               int
}

func newWhy(a *app) *cobra.Command {
	w := &whyCmd{app: a}
	cmd := &cobra.Command{
		Use:   "why [PID|FAILURE]",
		Short: "Show why a device allocation failed, or whether a process is stuck",
		Long: `Shows the last request of your programs for device memory that failed: what was
asked for and by which line, the bank as it was with the missing piece drawn
against its holes, who held the rest, why it failed, and what would have made it
fit. The same goes for circular buffers that clash with L1 buffers, and for a trace that
does not fit trace_region_size.

ttmond stores the last failures, across the exit of the program and its own restarts;
only the owner of a program and root may see them. The line of code that asked is
known of every Python program (CPython 3.10 to 3.12; of others with libttmon); the
lines that hold the rest only of programs run with ttmon run --stacks, which prints
the same at the end without a ttmond.

With the PID of a process that runs it also shows whether that is stuck: which
operation completed last on each chip and what was enqueued after it, how long
the host has waited for its chips, whether heartbeat, power and PCIe traffic of
the chips move, and what is concluded (docs/work.md). To suspect that a
process is stuck takes a ttmond that has watched it; the rest works without one.

Each thing that would have made a request fit was checked against the rules of
tt-metal's allocator, on the state as it was.`,
		Example: `  ttmon why                  the last failure
  ttmon why 4242             a process, running or not: failures, or is it stuck?
  ttmon why --list           all stored failures
  ttmon why f12              one of them, as named by --list and ttmon events
  ttmon why --html why.html  a page to send or attach
  ttmon replay x.ttrec why   failures in a recording`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return w.run(args) },
	}
	f := cmd.Flags()
	f.BoolVarP(&w.list, "list", "l", false, "list all stored failures, newest first")
	f.BoolVar(&w.json, "json", false, "print JSON: schema ttmon.failure/1, with --list ttmon.failures/1, of a running process ttmon.waiting/1")
	f.BoolVar(&w.stack, "stack", false, "show the full stack of the allocation, including library frames")
	f.StringVar(&w.html, "html", "", "write a self-contained page to `FILE` (- is standard output)")
	f.IntVar(&w.top, "top", 8, "list at most `N` lines of code that hold memory")
	return cmd
}

func (w *whyCmd) run(args []string) error {
	if w.list && (len(args) > 0 || w.html != "") {
		return exit.Usage("--list lists all failures: it takes no argument and no --html")
	}
	if done, err := w.stuck(args); done {
		return err
	}
	from, err := w.keeper()
	if err != nil {
		return err
	}
	defer from.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if w.list {
		return w.printList(ctx, from)
	}
	id, pid := "last", 0
	if len(args) > 0 {
		if n, err := strconv.Atoi(args[0]); err == nil {
			pid = n
		} else {
			id = args[0]
		}
	}
	r, body, err := from.Failure(ctx, id, pid)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return w.none(ctx, from, args)
	case err != nil:
		return exit.With(exit.Internal, "%w", err)
	case w.json:
		return w.Output("").Write(body)
	case w.html != "":
		return w.Output(w.html).Write(sheet.AppendHTML(nil, why.Sheet(r, why.Options{Now: w.now(), Spans: sheet.MaxSpans})))
	}
	return w.print(r)
}

// keeper keeps failures: a ttmond, or a recording.
type keeper interface {
	Failures(context.Context) ([]failure.Summary, error)
	// Failure is one by its ID; with "last" the newest, of a process if pid is not 0.
	// body is its JSON. Where there is none the error is client.ErrNotFound.
	Failure(ctx context.Context, id string, pid int) (r *failure.Record, body []byte, err error)
	Close()
}

func (w *whyCmd) keeper() (keeper, error) {
	if w.recorded != nil {
		list, err := w.recorded.Failures()
		if err != nil {
			return nil, exit.With(exit.Internal, "%w", err)
		}
		return list, nil
	}
	return w.daemon()
}

// now is the end of a recording, or the time.
func (w *whyCmd) now() time.Time {
	if w.recorded != nil {
		return w.recorded.End()
	}
	return time.Now()
}

// daemon is the ttmond that keeps failures.
func (w *whyCmd) daemon() (*client.Client, error) {
	if w.where.Direct {
		return nil, exit.Usage("--direct cannot be used here: failed allocations are stored by ttmond")
	}
	h, err := host.Open(w.where)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	path := h.Socket()
	if path == "" {
		return nil, exit.With(exit.Unsupported, "no ttmond is running, so no failed allocations are stored: start ttmond, or use ttmon run --stacks -- COMMAND for one program")
	}
	return client.New(path), nil
}

// none says what there is instead of what was asked for.
func (w *whyCmd) none(ctx context.Context, from keeper, args []string) error {
	list, err := from.Failures(ctx)
	switch {
	case err != nil:
		return exit.With(exit.Internal, "%w", err)
	case len(args) == 0 && w.json:
		return w.Output("").Write([]byte("null\n"))
	case len(args) == 0:
		return w.PrintText([]byte(w.noFailure()))
	case len(list) == 0:
		return exit.With(exit.NoDevice, "no process %s, no stored failure", words.Escape(args[0]))
	}
	return exit.With(exit.NoDevice, "no process and no stored failure %s: see ttmon why --list", words.Escape(args[0]))
}

// noFailure says that there is none.
func (w *whyCmd) noFailure() string {
	if w.recorded != nil {
		return "this recording has no failed device allocation\n"
	}
	return "ttmond has seen no failed device allocation of your programs\n"
}

func (w *whyCmd) print(r *failure.Record) error {
	to, err := w.TextOptions(w.Stdout)
	if err != nil {
		return err
	}
	return w.PrintText(why.Append(nil, r, why.Options{Now: w.now(), Top: w.top, Stack: w.stack, User: userName}, to.Options))
}

// userName is the name of a user, or its number.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

func (w *whyCmd) printList(ctx context.Context, from keeper) error {
	list, err := from.Failures(ctx)
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	if w.json {
		b, err := json.Marshal(failure.List{Schema: failure.ListSchema, Failures: append([]failure.Summary{}, list...)})
		if err != nil {
			return err
		}
		return w.Output("").Write(append(b, '\n'))
	}
	if len(list) == 0 {
		return w.PrintText([]byte(w.noFailure()))
	}
	to, err := w.TextOptions(w.Stdout)
	if err != nil {
		return err
	}
	return w.PrintText(why.AppendList(nil, list, w.now(), to.Options))
}
