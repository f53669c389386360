package workload

import (
	"strings"
	"time"
)

// program is a program that completed.
type program struct {
	Name       string
	Start, End time.Duration
}

// player plays a script, over and over. It is told what time it is, and says
// what has happened until then.
type player struct {
	steps []workStep
	at    int // step
	done  int // programs of it that completed
	gap   time.Duration
	// now is up to when the chips have worked.
	now     time.Duration
	hung    bool          // a program does not complete
	release time.Duration // when it does; 0: never by itself
	paused  bool          // told to be idle
}

// newPlayer plays steps from a moment on.
func newPlayer(steps []workStep, from time.Duration) *player { return &player{steps: steps, now: from} }

// WorkOrders are what a player can be told while it plays, for help texts.
const WorkOrders = "hang, idle, resume, or the steps of another script"

// CheckWork says whether Order would understand text.
func CheckWork(text string) error {
	switch strings.TrimSpace(text) {
	case "hang", "idle", "resume":
		return nil
	}
	_, err := parseWork(text)
	return err
}

// Order has the player do something else from a moment on.
func (p *player) Order(text string, at time.Duration) error {
	switch strings.TrimSpace(text) {
	case "hang":
		p.hung, p.release, p.paused, p.now = true, 0, false, at
	case "idle":
		p.hung, p.paused, p.now = false, true, at
	case "resume":
		p.resume(at)
	default:
		steps, err := parseWork(text)
		if err != nil {
			return err
		}
		*p = *newPlayer(steps, at)
	}
	return nil
}

// resume ends a hang or a pause. A hang of the script itself is over with it.
func (p *player) resume(at time.Duration) {
	if p.hung && p.steps[p.at].kind == hang {
		p.next()
	}
	p.hung, p.release, p.paused, p.now = false, 0, false, at
}

// Hung reports whether a program does not complete.
func (p *player) Hung() bool { return p.hung }

// workState is what the host and its chips do.
type workState int

// The states.
const (
	working workState = iota
	resting           // nothing is enqueued
	waiting           // the host waits for a program that takes long, or for ever
)

// polled is how long a program runs before its host is seen to wait for it.
const polled = 10 * time.Millisecond

// late is by how much a player may be behind before it gives up on catching
// up: its process was stopped, and the chips have done nothing since.
const late = time.Second

// mostAtOnce bounds what one call returns.
const mostAtOnce = 100_000

// Play returns the programs that completed until now, what the host does then,
// and the name of what was enqueued last.
func (p *player) Play(now time.Duration) (done []program, state workState, last string) {
	if now-p.now > late && !p.inLongStep() {
		p.now = now - late
	}
	for len(done) < mostAtOnce {
		state, open := p.held(now)
		if !open {
			return done, state, p.name()
		}
		if p.steps[p.at].kind != programs {
			if !p.pass(now) {
				return done, resting, p.name()
			}
			continue
		}
		program, ended := p.program(now)
		if !ended {
			return done, runs(now - program.Start), program.Name
		}
		done = append(done, program)
	}
	return done, working, p.name()
}

// held says what the host does that cannot follow its script, because of a hang or an
// order; open: it is not.
func (p *player) held(now time.Duration) (state workState, open bool) {
	switch {
	case p.hung && (p.release == 0 || now < p.release):
		return waiting, false
	case p.hung:
		p.resume(p.release)
	case p.paused:
		p.now = now
		return resting, false
	}
	return working, true
}

// pass passes a step without programs, unless it lasts longer than until now.
func (p *player) pass(now time.Duration) bool {
	switch step := &p.steps[p.at]; step.kind {
	case gap:
		p.gap = step.Time
		p.next()
	case hang:
		p.hung, p.release = true, 0
		if step.Time > 0 {
			p.release = p.now + step.Time
		}
	default:
		if now < p.now+step.Time {
			return false
		}
		p.now += step.Time
		p.next()
	}
	return true
}

// program is the next program, and whether it has ended by now.
func (p *player) program(now time.Duration) (x program, ended bool) {
	step := &p.steps[p.at]
	x = program{step.Name, p.now + p.gap, p.now + p.gap + step.Time}
	if now < x.End {
		return x, false
	}
	p.now = x.End
	if p.done++; p.done == step.Count {
		p.next()
	}
	return x, true
}

// runs is what the host does while a program has run for a time.
func runs(since time.Duration) workState {
	if since > polled {
		return waiting
	}
	return working
}

func (p *player) next() {
	p.at, p.done = (p.at+1)%len(p.steps), 0
	if p.at == 0 {
		p.gap = 0
	}
}

// inLongStep reports whether the step itself takes so long that being behind
// says nothing.
func (p *player) inLongStep() bool {
	return p.hung || p.paused || p.steps[p.at].Time > late/2
}

// name is the operation that was enqueued last, or will be.
func (p *player) name() string {
	for i := range p.steps {
		if s := &p.steps[(p.at+i)%len(p.steps)]; s.kind == programs {
			return s.Name
		}
	}
	return ""
}
