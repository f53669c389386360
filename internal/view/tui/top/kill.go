package top

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// signalChoice is a signal in the dialog.
type signalChoice struct {
	number syscall.Signal
	name   string
	help   string
}

// signals lists those people send first, then the rest by number. Digits
// jump to a number, as in nvtop.
func signals() []signalChoice {
	return []signalChoice{
		{syscall.SIGTERM, "SIGTERM", "asks it to end"},
		{syscall.SIGINT, "SIGINT", "as if by Ctrl-C"},
		{syscall.SIGKILL, "SIGKILL", "ends it at once: the device may need a reset"},
		{syscall.SIGHUP, "SIGHUP", "its terminal is gone; often: reload"},
		{syscall.SIGQUIT, "SIGQUIT", "ends it with a core dump"},
		{syscall.SIGSTOP, "SIGSTOP", "stops it until SIGCONT"},
		{syscall.SIGCONT, "SIGCONT", "lets it continue"},
		{syscall.SIGILL, "SIGILL", ""},
		{syscall.SIGTRAP, "SIGTRAP", ""},
		{syscall.SIGABRT, "SIGABRT", "ends it with a core dump"},
		{syscall.SIGBUS, "SIGBUS", ""},
		{syscall.SIGFPE, "SIGFPE", ""},
		{syscall.SIGUSR1, "SIGUSR1", "means what the program says"},
		{syscall.SIGSEGV, "SIGSEGV", ""},
		{syscall.SIGUSR2, "SIGUSR2", "means what the program says"},
		{syscall.SIGPIPE, "SIGPIPE", ""},
		{syscall.SIGALRM, "SIGALRM", ""},
		{syscall.SIGSTKFLT, "SIGSTKFLT", ""},
		{syscall.SIGCHLD, "SIGCHLD", ""},
		{syscall.SIGTSTP, "SIGTSTP", "as if by Ctrl-Z"},
		{syscall.SIGTTIN, "SIGTTIN", ""},
		{syscall.SIGTTOU, "SIGTTOU", ""},
		{syscall.SIGURG, "SIGURG", ""},
		{syscall.SIGXCPU, "SIGXCPU", ""},
		{syscall.SIGXFSZ, "SIGXFSZ", ""},
		{syscall.SIGVTALRM, "SIGVTALRM", ""},
		{syscall.SIGPROF, "SIGPROF", ""},
		{syscall.SIGWINCH, "SIGWINCH", ""},
		{syscall.SIGIO, "SIGIO", ""},
		{syscall.SIGPWR, "SIGPWR", ""},
		{syscall.SIGSYS, "SIGSYS", ""},
	}
}

// killDialog asks first which signal, then whether it is meant.
type killDialog struct {
	targets []act.Target
	lines   []string // what each target is, for the confirmation
	list    widget.List
	digits  string
	confirm bool
}

// openKill freezes the list and asks which signal to send.
func (s *State) openKill() []tui.Effect {
	if why := s.noKill(); why != "" {
		s.showMessage(cells.Warn, "%s", why)
		return nil
	}
	d := &killDialog{}
	for i := range s.proc.rows {
		r := &s.proc.rows[i]
		_, tagged := s.proc.tagged[r.id()]
		if len(s.proc.tagged) == 0 {
			tagged = i == s.proc.cursor
		}
		if !tagged {
			continue
		}
		if why := unkillable(r); why != "" {
			s.showMessage(cells.Warn, "%s", why)
			return nil
		}
		d.targets = append(d.targets, act.Target{PID: r.p.PID, StartTicks: r.p.StartTicks, Name: r.command()})
		d.lines = append(d.lines, fmt.Sprintf("%d  %s  %s", r.p.PID, words.Foreign(r.p.User), r.command()))
	}
	if len(d.targets) == 0 {
		s.showMessage(cells.Warn, "no process is selected")
		return nil
	}
	s.frozen = true
	s.dialog = d
	return nil
}

// unkillable says why a row cannot be signalled.
func unkillable(r *row) string {
	switch {
	case r.parent:
		return fmt.Sprintf("%d uses no device itself: select one of its children", r.p.PID)
	case r.p.State == model.Hidden:
		return "this process is outside our PID namespace: signal it from the host"
	case r.p.State == model.Exited:
		return fmt.Sprintf("%d has already exited; another process inherited its descriptor", r.p.PID)
	case r.p.StartTicks == 0:
		return fmt.Sprintf("%d: its start time is not known, so it cannot be told from a later process with the same pid", r.p.PID)
	}
	return ""
}

func (d *killDialog) close(s *State) {
	s.dialog = nil
	s.thaw()
}

func (d *killDialog) key(s *State, k tui.Key) []tui.Effect {
	d.list.N = len(signals())
	if d.confirm {
		switch k {
		case "y", "Y":
			return d.send(s)
		case "n", "N", "esc", "q", "f10":
			d.confirm = false
		}
		return nil
	}
	switch k {
	case "esc", "q", "f10":
		d.close(s)
	case "enter", "f9":
		d.confirm = true
	default:
		if m, ok := widget.MotionOf(k); ok {
			d.digits = ""
			d.list.Move(m)
		} else if r, ok := k.Rune(); ok && r >= '0' && r <= '9' {
			d.digit(string(r))
		}
	}
	return nil
}

// digit jumps to the signal whose number is being typed.
func (d *killDialog) digit(c string) {
	for _, try := range []string{d.digits + c, c} {
		for i, sig := range signals() {
			if fmt.Sprint(int(sig.number)) == try {
				d.list.Sel, d.digits = i, try
				return
			}
		}
	}
	d.digits = c
}

func (d *killDialog) send(s *State) []tui.Effect {
	d.close(s)
	return []tui.Effect{act.Kill{Signal: signals()[d.list.Sel].number, Targets: d.targets}}
}

func (d *killDialog) draw(s *State, screen cells.Area) {
	if d.confirm {
		d.drawConfirm(s, screen)
		return
	}
	title := "Send to " + d.lines[0]
	if len(d.lines) > 1 {
		title = fmt.Sprintf("Send to %d processes", len(d.lines))
	}
	d.list.N = len(signals())
	box := widget.Center(screen, min(66, screen.W-2), min(d.list.N+3, screen.H-2))
	box.Fill(' ', cells.Dialog)
	in := box.Box(words.Truncate(title, box.W-4), cells.Strong)
	in, foot := in.Bottom(1)
	foot.Put(1, 0, "Enter chooses, digits jump, Esc leaves it", cells.Faint)
	d.list.Draw(&s.hits, in, cells.Selected, func(i int, row cells.Area) {
		sig := signals()[i]
		row.PutRight(4, 0, fmt.Sprint(int(sig.number)), cells.Text)
		row.Put(5, 0, sig.name, cells.Text)
		row.Put(16, 0, words.Truncate(sig.help, row.W-17), cells.Faint)
	}, func(i int) []tui.Effect {
		d.list.Sel, d.confirm = i, true
		return nil
	})
}

// drawConfirm names the processes and asks.
func (d *killDialog) drawConfirm(s *State, screen cells.Area) {
	sig := signals()[d.list.Sel]
	shown := d.lines[:min(len(d.lines), max(screen.H-10, 1))]
	box := widget.Center(screen, min(76, screen.W-2), len(shown)+6)
	box.Fill(' ', cells.Dialog)
	in := box.Box("Send "+sig.name+"?", cells.Bad)
	for i, text := range shown {
		in.Put(1, i+1, words.Truncate(text, in.W-2), cells.Strong)
	}
	y := len(shown) + 1
	if n := len(d.lines) - len(shown); n > 0 {
		in.Put(1, y, fmt.Sprintf("and %d more", n), cells.Strong)
	}
	y = in.H - 1
	x := in.Put(1, y, " y ", cells.Key)
	x = in.Put(x, y, "Send "+sig.name, cells.KeyText)
	s.hits.Add(in.Sub(1, y, x-1, 1), func(m tui.Mouse) []tui.Effect {
		if m.Action == tui.Press {
			return d.send(s)
		}
		return nil
	})
	start := x + 3
	x = in.Put(start, y, " n ", cells.Key)
	x = in.Put(x, y, "No", cells.KeyText)
	s.hits.Add(in.Sub(start, y, x-start, 1), func(m tui.Mouse) []tui.Effect {
		if m.Action == tui.Press {
			d.confirm = false
		}
		return nil
	})
}

// killed says how it went.
func (s *State) killed(ev act.Killed) {
	name := ev.Kill.Signal.String()
	for _, sig := range signals() {
		if sig.number == ev.Kill.Signal {
			name = sig.name
		}
	}
	var failed []string
	for i, err := range ev.Errs {
		if err != nil {
			failed = append(failed, fmt.Sprintf("%d: %v", ev.Kill.Targets[i].PID, err))
		} else {
			delete(s.proc.tagged, id{ev.Kill.Targets[i].PID, ev.Kill.Targets[i].StartTicks})
		}
	}
	if len(failed) > 0 {
		s.showMessage(cells.Bad, "%s not sent to %s", name, strings.Join(failed, "; "))
		return
	}
	to := fmt.Sprint(ev.Kill.Targets[0].PID)
	if n := len(ev.Kill.Targets); n > 1 {
		to = fmt.Sprintf("%d processes", n)
	}
	s.showMessage(cells.Good, "%s sent to %s", name, to)
}
