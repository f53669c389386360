package metal

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
)

// Main is the program: a tt-metal process with the given arguments. Without a
// script it takes commands from standard input, one a line, and answers each
// with a line of JSON. It returns the exit code.
func Main(args []string) int {
	err := run(args)
	switch {
	case err == nil, errors.Is(err, errExit):
		return 0
	case errors.Is(err, flag.ErrHelp):
		return 2
	}
	fmt.Fprintln(os.Stderr, "metal:", err)
	return 1
}

func run(args []string) error {
	var box box
	flags := flag.NewFlagSet("metal", flag.ContinueOnError)
	layout := flags.Uint("layout", 3, "layout version of the writer: 2, 3 or 4")
	dir := flags.String("shm", "/dev/shm", "`directory` of the regions")
	script := flags.String("e", "", "run this `script`, then hold until a signal comes")
	child := flags.Bool("child", false, "take over the mappings of the forking parent (internal)")
	box.flags(flags)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "metal plays a tt-metal process. Flags:")
		flags.PrintDefaults()
		fmt.Fprint(flags.Output(), "Commands:\n", Usage)
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if box.mustBe != 0 && box.mustBe != os.Getpid() {
		return errExit
	}
	if box.wanted() {
		return box.enter(args)
	}
	w, err := New(*dir, uint32(*layout))
	if err != nil {
		return err
	}
	if *child {
		return w.runChild(os.Stdin)
	}
	if *script != "" {
		return w.runScript(*script, os.Stdout)
	}
	return w.converse(os.Stdin, os.Stdout)
}

// runScript runs all commands, prints the last answer, and holds until it is
// asked to end.
func (w *Workload) runScript(script string, out io.Writer) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGINT, unix.SIGTERM)
	var reply Reply
	for line := range strings.SplitSeq(strings.ReplaceAll(script, ";", "\n"), "\n") {
		var err error
		reply, err = w.Do(line)
		switch {
		case errors.Is(err, errEnd):
			w.CloseAll()
			return nil
		case err != nil:
			return err
		}
	}
	if err := json.NewEncoder(out).Encode(reply); err != nil {
		return err
	}
	<-ended
	w.CloseAll()
	return nil
}

// converse answers commands until its input ends; then it ends cleanly.
func (w *Workload) converse(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		reply, err := w.Do(lines.Text())
		switch {
		case errors.Is(err, errExit):
			return err
		case errors.Is(err, errEnd):
			w.CloseAll()
			return nil
		case err != nil:
			reply.Error = err.Error()
		}
		if err := answers.Encode(reply); err != nil {
			return err
		}
	}
	w.CloseAll()
	return lines.Err()
}
