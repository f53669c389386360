package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/preload"
	"github.com/ttmon/ttmon/internal/proc"
	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/runtext"
	"github.com/ttmon/ttmon/internal/view/words"
)

// How often ledgers are looked at while the program runs. They stay until they
// have been read, so nothing is missed in between but peaks of sums over processes.
const lookEvery = 250 * time.Millisecond

// watched is a program that runs under ttmon.
type watched struct {
	r       *runCmd
	args    []string
	cmd     *exec.Cmd
	library *preload.Library
	reader  *track.Reader
	builder *runreport.Builder
	sampler *sampler
	log     string // where the library complains
	started time.Time
	ended   chan error
	signals chan os.Signal

	session *session        // the recording of the run, or nil
	passed  []chan struct{} // closed when what it printed is passed on

	chips map[uint64]string // names of chips, for the meter
	asked time.Time         // when they were asked for
}

// start starts the program with the library.
func (r *runCmd) start(args []string, c checked) (w *watched, err error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		code := 127
		if errors.Is(err, fs.ErrPermission) {
			code = 126
		}
		return nil, &exitError{code, fmt.Errorf("run: %w", err)}
	}
	w = &watched{r: r, args: args, started: time.Now(), ended: make(chan error, 1), signals: make(chan os.Signal, 16)}
	if w.library, err = preload.Place(); err != nil && !errors.Is(err, preload.ErrArch) {
		return nil, err
	}
	name, err := runName()
	if err != nil {
		return nil, err
	}
	dir := ledgerDir()
	w.reader = track.NewReader(track.Options{Dir: dir, Run: name, Remove: true, Events: r.session != nil})
	w.builder = runreport.NewBuilder(w.started)
	w.sampler = &sampler{app: r.app}
	w.cmd = &exec.Cmd{Path: path, Args: args, Stdin: os.Stdin, Stdout: r.stdout, Stderr: r.stderr, Env: os.Environ()}
	if err := w.record(); err != nil {
		w.close()
		return nil, err
	}
	if w.library != nil {
		w.cmd.Env = w.environment(name, dir, c.stacks)
	}
	signal.Notify(w.signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	if err := w.cmd.Start(); err != nil {
		w.close()
		return nil, &exitError{126, fmt.Errorf("run: %w", err)}
	}
	w.begun()
	go func() { w.ended <- w.cmd.Wait() }()
	return w, nil
}

// record begins the recording of the run, if one is wanted.
func (w *watched) record() (err error) {
	if w.r.session == nil {
		return nil
	}
	o := *w.r.session
	o.command = w.args
	if w.session, err = w.r.newSession(o); err != nil {
		return err
	}
	w.session.follow(w.reader, false)
	if !o.output {
		return nil
	}
	out, passed, err := w.session.capture(1, w.r.stdout)
	if err != nil {
		return err
	}
	w.cmd.Stdout, w.passed = out, append(w.passed, passed)
	if out, passed, err = w.session.capture(2, w.r.stderr); err != nil {
		return err
	}
	w.cmd.Stderr, w.passed = out, append(w.passed, passed)
	return nil
}

// begun notes who the program is, and gives up our ends of its pipes.
func (w *watched) begun() {
	if w.session == nil {
		return
	}
	w.session.meta.PID = w.cmd.Process.Pid
	w.session.r.Meta(time.Now(), w.session.meta)
	if len(w.passed) > 0 {
		w.cmd.Stdout.(*os.File).Close()
		w.cmd.Stderr.(*os.File).Close()
	}
}

// runName tells the ledgers of this run from others.
func runName() (string, error) {
	st, err := proc.ReadStat(hostfs.Root{}, os.Getpid())
	if err != nil {
		return "", fmt.Errorf("reading our own start time: %w", err)
	}
	return track.RunName(os.Getpid(), st.Start, rand.Uint32()), nil
}

// ledgerDir is where the ledgers of the run are: /dev/shm, where every ttmon
// finds them, or a folder for temporary files where that cannot be written to.
func ledgerDir() string {
	const usual = "/dev/shm"
	if unix.Access(usual, unix.W_OK|unix.X_OK) == nil {
		return usual
	}
	return os.TempDir()
}

func (w *watched) environment(name, dir, stacks string) []string {
	set := map[string]string{"TTMON_RUN": name, "TTMON_DIR": dir, "LD_PRELOAD": w.library.Path}
	if old := os.Getenv("LD_PRELOAD"); old != "" {
		set["LD_PRELOAD"] += ":" + old
	}
	if stacks != "" {
		set["TTMON_STACKS"] = stacks
	}
	if w.session != nil {
		set["TTMON_EVENTS"] = "1"
	}
	if f, err := os.CreateTemp("", "ttmon-run-*.log"); err == nil {
		w.log = f.Name()
		f.Close()
		set["TTMON_LOG"] = w.log
	}
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if _, ok := set[name]; !ok && name != "TTMON_STACKS" && name != "TTMON_EVENTS" {
			env = append(env, v)
		}
	}
	for name, v := range set {
		env = append(env, name+"="+v)
	}
	return env
}

func (w *watched) close() {
	signal.Stop(w.signals)
	w.reader.Close()
	w.sampler.close()
	if w.library != nil {
		w.library.Close()
	}
	if w.log != "" {
		os.Remove(w.log)
	}
}

// watch follows the program to its end and returns the account. A recording
// that cannot be written is told of when the program has ended: it is not its
// business.
func (w *watched) watch() (*runreport.Report, error) {
	defer w.close()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var drains <-chan time.Time
	if w.session != nil {
		fast := time.NewTicker(drainEvery)
		defer fast.Stop()
		drains = fast.C
	}
	var failed error // of the recording
	meter := runtext.Meter{}
	_, _, terminal := size(w.r.stderr)
	for {
		select {
		case err := <-w.ended:
			w.look()
			if w.r.live && terminal {
				w.r.stderr.Write(meter.Clear(nil))
			}
			report := w.report(err)
			return report, w.endSession(report, failed)
		case s := <-w.signals:
			w.pass(s)
		case now := <-drains:
			if failed == nil {
				failed = w.session.tick(now)
			}
		case now := <-ticker.C:
			w.look()
			held := w.builder.Now(now)
			if w.builder.Processes() == 0 {
				w.sampler.look(w.cmd.Process.Pid, w.started, now)
				held = w.sampler.now()
			}
			if w.r.live && terminal {
				width, _, _ := size(w.r.stderr)
				w.nameChips(held, now)
				w.r.stderr.Write(meter.Append(nil, held, w.chips, now.Sub(w.started), width))
			}
		}
	}
}

// nameChips finds out which devices of this host chips are.
func (w *watched) nameChips(held map[uint64]map[model.Pool]uint64, now time.Time) {
	unnamed := false
	for id := range held {
		_, named := w.chips[id]
		unnamed = unnamed || !named
	}
	if !unnamed || now.Sub(w.asked) < 5*time.Second {
		return
	}
	w.asked = now
	h, err := w.r.openHost()
	if err != nil {
		return
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	snap, err := h.Next(ctx)
	if err != nil {
		return
	}
	name := words.ChipNames(snap)
	w.chips = map[uint64]string{}
	for id := range held {
		w.chips[id] = name(id)
	}
}

// look reads the ledgers of the run.
func (w *watched) look() {
	sweep := w.reader.Read(nil)
	for _, p := range sweep.Processes {
		w.builder.Add(p.Path, p.Ledger, true)
	}
	for _, e := range sweep.Ended {
		w.builder.Add(e.Path, e.Ledger, false)
	}
	w.builder.Now(time.Now())
	if w.session != nil {
		w.session.sweep(sweep)
	}
}

// endSession ends the recording, if there is one, with how the program ended.
func (w *watched) endSession(report *runreport.Report, failed error) error {
	if w.session == nil {
		return nil
	}
	for _, passed := range w.passed { // a child that keeps the pipe open is not waited for
		select {
		case <-passed:
		case <-time.After(time.Second):
		}
	}
	w.look() // what the last one told between the last look and its end
	w.session.meta.ExitCode = &report.ExitCode
	return w.session.end(failed, w.r.told)
}

// pass hands a signal on, unless the terminal has sent it to all of us.
func (w *watched) pass(s os.Signal) {
	if (s == unix.SIGINT || s == unix.SIGQUIT) && inForeground() {
		return
	}
	_ = w.cmd.Process.Signal(s) // it may just have ended
}

// inForeground tells whether keys of the terminal reach our process group.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func (w *watched) report(ended error) *runreport.Report {
	report := w.builder.Report()
	report.Command = w.args
	report.Seconds = time.Since(w.started).Seconds()
	report.Complaints = w.complaints()
	if exit, ok := errors.AsType[*exec.ExitError](ended); ok {
		report.ExitCode = exit.ExitCode()
		if status := exit.Sys().(interface{ Signaled() bool }); status.Signaled() {
			number := exit.Sys().(interface{ Signal() unix.Signal }).Signal()
			report.ExitCode, report.Signal = 128+int(number), unix.SignalName(number)
		}
	} else if ended != nil {
		report.ExitCode = exitInternal
		report.Complaints = append(report.Complaints, ended.Error())
	}
	if report.Method == runreport.Nothing {
		w.sampler.fill(report)
	}
	return report
}

// complaints are what the library said, each once.
func (w *watched) complaints() (out []string) {
	f, err := os.Open(w.log)
	if err != nil {
		return nil
	}
	defer f.Close()
	seen := map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan() && len(out) < 20; {
		if line := strings.TrimPrefix(s.Text(), "libttmon: "); !seen[line] {
			seen[line] = true
			out = append(out, line)
		}
	}
	return out
}
