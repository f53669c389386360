package selftest

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/cli/selftest/report"
)

// cost measures what ttmon takes here: to start, to look, to run.
func (t *test) cost(ctx context.Context, r *report.Report) {
	t.startUp(ctx, r)
	t.measureSnapshot(ctx, r)
	t.screen(ctx, r)
	t.daemonCost(ctx, r)
}

// starts is how often a start is measured; the fastest counts.
const starts = 10

func (t *test) startUp(ctx context.Context, r *report.Report) {
	out := report.Row{Part: report.Cost, What: "start of ttmon", By: "time of ttmon version; of true", Verdict: report.Measured}
	ours, err := fastest(ctx, t.program, "version")
	if err != nil {
		out.Verdict, out.Note = report.Unknown, err.Error()
		r.Add(out)
		return
	}
	out.Ours = fmt.Sprintf("%.1f ms", ours.Seconds()*1e3)
	if floor, err := fastest(ctx, "true"); err == nil {
		out.Witness = fmt.Sprintf("%.1f ms", floor.Seconds()*1e3)
	}
	r.Add(out)
}

func fastest(ctx context.Context, name string, args ...string) (time.Duration, error) {
	best := time.Duration(math.MaxInt64)
	for range starts {
		begin := time.Now()
		if err := exec.CommandContext(ctx, name, args...).Run(); err != nil {
			return 0, fmt.Errorf("running %s: %w", name, err)
		}
		best = min(best, time.Since(begin))
	}
	return best, nil
}

// measureSnapshot measures the CPU of one snapshot, read directly.
func (t *test) measureSnapshot(ctx context.Context, r *report.Report) {
	const looks = 10
	t.snapshot(ctx) // the first one opens files
	before := cpuOf(unix.RUSAGE_SELF)
	for range looks {
		t.snapshot(ctx)
	}
	each := (cpuOf(unix.RUSAGE_SELF) - before) / looks
	r.Add(report.Row{
		Part: report.Cost, What: "one look at the host", Ours: fmt.Sprintf("%.2f ms of CPU", each.Seconds()*1e3), Verdict: report.Measured,
		Witness: fmt.Sprintf("%.2f %% of a core", each.Seconds()*100), By: "rusage; once a second",
	})
}

func cpuOf(who int) time.Duration {
	var u unix.Rusage
	if unix.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watchFor is how long programs are watched to see what they cost.
const watchFor = 3 * time.Second

// screen runs ttmon top on a terminal of its own.
func (t *test) screen(ctx context.Context, r *report.Report) {
	out := report.Row{Part: report.Cost, What: "ttmon top", By: "rusage over 3 s", Verdict: report.Measured}
	used, err := t.runOnTerminal(ctx, "top")
	if err != nil {
		out.Verdict, out.Note = report.Unknown, err.Error()
	} else {
		out.Ours = fmt.Sprintf("%.2f %% of a core", used.Seconds()/watchFor.Seconds()*100)
	}
	r.Add(out)
}

// runOnTerminal runs ttmon on a new terminal for watchFor and tells the CPU time
// it took after its start.
func (t *test) runOnTerminal(ctx context.Context, args ...string) (time.Duration, error) {
	terminal, screen, err := openTerminal()
	if err != nil {
		return 0, err
	}
	defer terminal.Close()
	cmd := exec.CommandContext(ctx, t.program, append(t.flags, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "TTMON_TOP_RUNS=false") // a test leaves nothing behind
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	screen.Close()
	if err != nil {
		return 0, fmt.Errorf("starting ttmon %s: %w", args[0], err)
	}
	go func() { // what is drawn has to be taken
		buf := make([]byte, 64<<10)
		for {
			if _, err := terminal.Read(buf); err != nil {
				return
			}
		}
	}()
	sleep(ctx, time.Second)
	begin, ok := t.cpuTime(cmd.Process.Pid)
	sleep(ctx, watchFor)
	end, still := t.cpuTime(cmd.Process.Pid)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !ok || !still {
		return 0, fmt.Errorf("ttmon %s ended by itself", args[0])
	}
	return end - begin, nil
}

// openTerminal makes a terminal of 80 by 24.
func openTerminal() (terminal, screen *os.File, err error) {
	terminal, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	fd := int(terminal.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err == nil {
		screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		terminal.Close()
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	return terminal, screen, nil
}

// daemonCost measures a ttmond that runs here.
func (t *test) daemonCost(ctx context.Context, r *report.Report) {
	pid := t.daemonPID()
	if pid == 0 {
		return
	}
	begin, ok := t.cpuTime(pid)
	sleep(ctx, watchFor)
	end, still := t.cpuTime(pid)
	out := report.Row{Part: report.Cost, What: "ttmond", By: "its stat and status over 3 s", Verdict: report.Measured}
	if !ok || !still {
		out.Verdict, out.Note = report.Unknown, "its process cannot be seen"
		r.Add(out)
		return
	}
	out.Ours = fmt.Sprintf("%.2f %% of a core", (end-begin).Seconds()/watchFor.Seconds()*100)
	for line := range strings.Lines(t.text(fmt.Sprintf("/proc/%d/status", pid))) {
		if kib, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if n, err := strconv.Atoi(strings.Fields(kib)[0]); err == nil {
				out.Witness = fmt.Sprintf("%d MiB", n>>10)
			}
		}
	}
	r.Add(out)
}

// clockTick is the unit of times in /proc/<pid>/stat, the same on every
// architecture that Linux runs on today.
const clockTick = 10 * time.Millisecond

// cpuTime is what a process has used.
func (t *test) cpuTime(pid int) (time.Duration, bool) {
	text := t.text(fmt.Sprintf("/proc/%d/stat", pid))
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return 0, false
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 13 {
		return 0, false
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * clockTick, err1 == nil && err2 == nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
