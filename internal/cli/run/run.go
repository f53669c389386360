// Package run runs a program with libttmon in it, and keeps the account of the
// device memory that it takes: the work of ttmon run and ttmon record.
package run

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/preload"
	"github.com/ttmon/ttmon/internal/cli/session"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/unixsock"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/runtext"
)

// How often ledgers are read while the program runs. They stay until they
// have been read, so nothing is missed in between but peaks of sums over processes.
const lookEvery = 250 * time.Millisecond

// Exit codes of programs that cannot be run, as shells have them.
const (
	cannotRun = 126
	notFound  = 127
)

// Options say what is run, and how.
type Options struct {
	Command        []string
	Stdout, Stderr *os.File
	Stacks         string           // which call sites are recorded: python, native, all; empty: none
	Live           bool             // show a line with what is held now on a terminal
	Record         *session.Options // where the run is recorded; nil: nowhere
	Host           host.Options
}

// Result is how a program ended.
type Result struct {
	Report    *runreport.Report
	Recording *session.Session // nil: the run was not recorded
}

// Run runs a program to its end and returns the account. What a recording cannot
// write is reported after the program has exited, so that it does not disturb it.
func Run(o Options) (*Result, error) {
	p, err := start(o)
	if err != nil {
		return nil, err
	}
	defer p.close()
	report, err := p.watch()
	if err != nil {
		return nil, err
	}
	return &Result{report, p.session}, nil
}

// program is one that runs under ttmon.
type program struct {
	o       Options
	cmd     *exec.Cmd
	library *preload.Library
	reader  *track.Reader
	builder *runreport.Builder
	sampler *sampler
	log     string // where the library complains
	started time.Time
	ended   chan error
	signals chan os.Signal

	session *session.Session // the recording of the run, or nil
	passed  []chan struct{}  // closed when what it printed is passed on

	meter runtext.Meter
	chips map[uint64]string // names of chips, for the meter
	asked time.Time         // when they were asked for
}

// start starts the program with the library.
func start(o Options) (*program, error) {
	path, err := exec.LookPath(o.Command[0])
	if err != nil {
		code := notFound
		if errors.Is(err, fs.ErrPermission) {
			code = cannotRun
		}
		return nil, exit.With(code, "run: %w", err)
	}
	p := &program{o: o, started: time.Now(), ended: make(chan error, 1), signals: make(chan os.Signal, 16)}
	if p.library, err = preload.Install(); err != nil && !errors.Is(err, preload.ErrArch) {
		return nil, err
	}
	name, err := track.OwnRun()
	if err != nil {
		return nil, err
	}
	dir := ledgerDir()
	ledgers := track.Options{Dir: dir, Run: name, Remove: true, Events: o.Record != nil}
	if dir == usualDir && ttmondReads(o.Host) {
		ledgers.RemoveAfter = ttmondTime
	}
	p.reader = track.NewReader(ledgers)
	p.builder = runreport.NewBuilder(p.started)
	p.sampler = &sampler{from: o.Host}
	p.cmd = &exec.Cmd{Path: path, Args: o.Command, Stdin: os.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Env: os.Environ()}
	if err := p.record(); err != nil {
		p.close()
		return nil, err
	}
	if p.library != nil {
		p.cmd.Env = p.environment(name, dir)
	}
	signal.Notify(p.signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	if err := p.cmd.Start(); err != nil {
		p.close()
		return nil, exit.With(cannotRun, "run: %w", err)
	}
	p.begun()
	go func() { p.ended <- p.cmd.Wait() }()
	return p, nil
}

// record begins the recording of the run, if one is wanted.
func (p *program) record() (err error) {
	if p.o.Record == nil {
		return nil
	}
	o := *p.o.Record
	o.Command = p.o.Command
	if p.session, err = session.New(o); err != nil {
		return err
	}
	p.session.Follow(p.reader, false)
	if !o.Output {
		return nil
	}
	out, passed, err := p.session.Capture(1, p.o.Stdout)
	if err != nil {
		return err
	}
	p.cmd.Stdout, p.passed = out, append(p.passed, passed)
	if out, passed, err = p.session.Capture(2, p.o.Stderr); err != nil {
		return err
	}
	p.cmd.Stderr, p.passed = out, append(p.passed, passed)
	return nil
}

// begun notes who the program is, and gives up our ends of its pipes.
func (p *program) begun() {
	if p.session == nil {
		return
	}
	p.session.Started(p.cmd.Process.Pid)
	if len(p.passed) > 0 {
		p.cmd.Stdout.(*os.File).Close()
		p.cmd.Stderr.(*os.File).Close()
	}
}

// ledgerDir is where the ledgers of the run are: /dev/shm, where every ttmon
// finds them, or a folder for temporary files where that cannot be written to.
func ledgerDir() string {
	if unix.Access(usualDir, unix.W_OK|unix.X_OK) == nil {
		return usualDir
	}
	return os.TempDir()
}

// usualDir is where ttmond looks for ledgers.
const usualDir = "/dev/shm"

// ttmondTime is how long the ledgers of processes that have exited are left to a ttmond,
// which looks every second. It removes those that are there when the run ends.
const ttmondTime = 3 * time.Second

// ttmondReads reports whether a ttmond here reads the ledgers of this run: ttmon runs
// has the exact peaks from it, also of a program that exits between two snapshots. One
// that this process does not see has another /dev/shm.
func ttmondReads(o host.Options) bool {
	h, err := host.Open(o)
	if err != nil {
		return false
	}
	defer h.Close()
	peer, err := unixsock.Peer(h.Socket())
	return err == nil && peer.Pid > 0 && (peer.Uid == 0 || int(peer.Uid) == os.Geteuid())
}

func (p *program) environment(name, dir string) []string {
	set := map[string]string{"TTMON_RUN": name, "TTMON_DIR": dir, "LD_PRELOAD": p.library.Path}
	if old := os.Getenv("LD_PRELOAD"); old != "" {
		set["LD_PRELOAD"] += ":" + old
	}
	if p.o.Stacks != "" {
		set["TTMON_STACKS"] = p.o.Stacks
	}
	if p.session != nil {
		set["TTMON_EVENTS"] = "1"
	}
	if f, err := os.CreateTemp("", "ttmon-run-*.log"); err == nil {
		p.log = f.Name()
		f.Close()
		set["TTMON_LOG"] = p.log
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

func (p *program) close() {
	signal.Stop(p.signals)
	p.reader.Close()
	p.sampler.close()
	if p.library != nil {
		p.library.Close()
	}
	if p.log != "" {
		os.Remove(p.log)
	}
}

// watch follows the program to its end and returns the account.
func (p *program) watch() (*runreport.Report, error) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var drains <-chan time.Time
	if p.session != nil {
		fast := time.NewTicker(session.DrainEvery)
		defer fast.Stop()
		drains = fast.C
	}
	var failed error // of the recording
	_, _, terminal := console.Size(p.o.Stderr)
	live := p.o.Live && terminal
	for {
		select {
		case err := <-p.ended:
			p.look()
			if live {
				p.o.Stderr.Write(p.meter.Clear(nil))
			}
			report := p.report(err)
			return report, p.endSession(report, failed)
		case s := <-p.signals:
			p.pass(s)
		case now := <-drains:
			if failed == nil {
				failed = p.session.Tick(now)
			}
		case now := <-ticker.C:
			p.look()
			held := p.held(now)
			if live {
				p.draw(held, now)
			}
		}
	}
}

// held is what the program holds now: as its ledgers say, or as it looks from
// outside where it keeps none.
func (p *program) held(now time.Time) map[uint64]map[model.Pool]uint64 {
	if p.builder.Processes() > 0 {
		return p.builder.Now(now)
	}
	p.sampler.look(p.cmd.Process.Pid, p.started, now)
	return p.sampler.now()
}

// draw draws the line of --live.
func (p *program) draw(held map[uint64]map[model.Pool]uint64, now time.Time) {
	width, _, _ := console.Size(p.o.Stderr)
	p.nameChips(held, now)
	p.o.Stderr.Write(p.meter.Append(nil, held, p.chips, now.Sub(p.started), width))
}

// nameChips finds out which devices of this host chips are.
func (p *program) nameChips(held map[uint64]map[model.Pool]uint64, now time.Time) {
	unnamed := false
	for id := range held {
		_, named := p.chips[id]
		unnamed = unnamed || !named
	}
	if !unnamed || now.Sub(p.asked) < 5*time.Second {
		return
	}
	p.asked = now
	snap := once(p.o.Host, func(*model.Snapshot) bool { return true })
	if snap == nil {
		return
	}
	name := words.ChipNames(snap)
	p.chips = map[uint64]string{}
	for id := range held {
		p.chips[id] = name(id)
	}
}

// look reads the ledgers of the run.
func (p *program) look() {
	sweep, now := p.reader.Read(nil), time.Now()
	for _, x := range sweep.Processes {
		p.builder.Add(x.Path, x.Ledger, true)
		p.builder.AddWork(x.Path, x.Work, now)
	}
	for _, e := range sweep.Ended {
		p.builder.Add(e.Path, e.Ledger, false)
		p.builder.AddWork(e.Path, e.Work, now)
	}
	p.builder.Now(now)
	if p.session != nil {
		p.session.Sweep(sweep)
	}
}

// endSession ends the recording, if there is one, with how the program ended.
func (p *program) endSession(report *runreport.Report, failed error) error {
	if p.session == nil {
		return nil
	}
	for _, passed := range p.passed { // a child that keeps the pipe open is not waited for
		select {
		case <-passed:
		case <-time.After(time.Second):
		}
	}
	p.look() // what the last one told between the last look and its end
	p.session.Exited(report.Run.End.ExitCode())
	return p.session.End(failed)
}

// pass hands a signal on, unless the terminal has sent it to all of us.
func (p *program) pass(s os.Signal) {
	if (s == unix.SIGINT || s == unix.SIGQUIT) && inForeground() {
		return
	}
	_ = p.cmd.Process.Signal(s) // it may just have ended
}

// inForeground reports whether keys of the terminal reach our process group.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// report is the account of the program, which has ended.
func (p *program) report(ended error) *runreport.Report {
	now := time.Now()
	var snap *model.Snapshot
	if p.builder.Processes() > 0 {
		snap = once(p.o.Host, p.builder.Placed) // it says which devices the chips are
	}
	report := p.builder.Report(now, snap)
	if report.Method == runreport.Nothing {
		p.sampler.fill(report)
	}
	report.Complaints = p.complaints()
	r := &report.Run
	r.UID, r.Name, r.Command = os.Getuid(), filepath.Base(p.o.Command[0]), strings.Join(p.o.Command, " ")
	r.Start, r.Last, r.End = p.started, now, runs.Ending{Kind: runs.Exited, At: now}
	code := 0
	if died, ok := errors.AsType[*exec.ExitError](ended); ok {
		code = died.ExitCode()
		if status := died.Sys().(interface{ Signaled() bool }); status.Signaled() {
			r.End.Kind, r.End.Signal = runs.Killed, int(died.Sys().(interface{ Signal() unix.Signal }).Signal())
		}
	} else if ended != nil {
		code = exit.Internal
		report.Complaints = append(report.Complaints, ended.Error())
	}
	if r.End.Signal == 0 {
		r.End.Code = &code
	}
	r.Blame()
	return report
}

// complaints are what the library said, each once.
func (p *program) complaints() (out []string) {
	f, err := os.Open(p.log)
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
