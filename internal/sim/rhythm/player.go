package rhythm

import (
	"fmt"
	"strings"
	"time"
)

// Program is a program that completed.
type Program struct {
	Name       string
	Start, End time.Duration
}

// Player plays a script, over and over. It is told what time it is, and says
// what has happened until then.
type Player struct {
	steps []Step
	at    int // step
	done  int // programs of it that completed
	gap   time.Duration
	// now is up to when the chips have worked.
	now     time.Duration
	hung    bool          // a program does not complete
	release time.Duration // when it does; 0: never by itself
	paused  bool          // told to be idle
}

// New plays steps from a moment on.
func New(steps []Step, from time.Duration) *Player { return &Player{steps: steps, now: from} }

// Orders are what a player can be told while it plays, for help texts.
const Orders = "hang, idle, resume, or the steps of another script"

// Check says whether Order would understand text.
func Check(text string) error {
	switch strings.TrimSpace(text) {
	case "hang", "idle", "resume":
		return nil
	}
	_, err := Parse(text)
	return err
}

// Order has the player do something else from a moment on.
func (p *Player) Order(text string, at time.Duration) error {
	switch strings.TrimSpace(text) {
	case "hang":
		p.hung, p.release, p.paused, p.now = true, 0, false, at
	case "idle":
		p.hung, p.paused, p.now = false, true, at
	case "resume":
		p.resume(at)
	default:
		steps, err := Parse(text)
		if err != nil {
			return err
		}
		*p = *New(steps, at)
	}
	return nil
}

// resume ends a hang or a pause. A hang of the script itself is over with it.
func (p *Player) resume(at time.Duration) {
	if p.hung && p.steps[p.at].Kind == Hang {
		p.next()
	}
	p.hung, p.release, p.paused, p.now = false, 0, false, at
}

// Hung reports whether a program does not complete.
func (p *Player) Hung() bool { return p.hung }

// State is what the host and its chips do.
type State int

// The states.
const (
	Working State = iota
	Resting       // nothing is enqueued
	Waiting       // the host waits for a program that takes long, or for ever
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
func (p *Player) Play(now time.Duration) (done []Program, state State, last string) {
	if now-p.now > late && !p.inLongStep() {
		p.now = now - late
	}
	for len(done) < mostAtOnce {
		state, open := p.held(now)
		if !open {
			return done, state, p.name()
		}
		if p.steps[p.at].Kind != Programs {
			if !p.pass(now) {
				return done, Resting, p.name()
			}
			continue
		}
		program, ended := p.program(now)
		if !ended {
			return done, runs(now - program.Start), program.Name
		}
		done = append(done, program)
	}
	return done, Working, p.name()
}

// held says what the host does that cannot follow its script, because of a hang or an
// order; open: it is not.
func (p *Player) held(now time.Duration) (state State, open bool) {
	switch {
	case p.hung && (p.release == 0 || now < p.release):
		return Waiting, false
	case p.hung:
		p.resume(p.release)
	case p.paused:
		p.now = now
		return Resting, false
	}
	return Working, true
}

// pass passes a step without programs, unless it lasts longer than until now.
func (p *Player) pass(now time.Duration) bool {
	switch step := &p.steps[p.at]; step.Kind {
	case Gap:
		p.gap = step.Time
		p.next()
	case Hang:
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
func (p *Player) program(now time.Duration) (x Program, ended bool) {
	step := &p.steps[p.at]
	x = Program{step.Name, p.now + p.gap, p.now + p.gap + step.Time}
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
func runs(since time.Duration) State {
	if since > polled {
		return Waiting
	}
	return Working
}

func (p *Player) next() {
	p.at, p.done = (p.at+1)%len(p.steps), 0
	if p.at == 0 {
		p.gap = 0
	}
}

// inLongStep reports whether the step itself takes so long that being behind
// says nothing.
func (p *Player) inLongStep() bool {
	return p.hung || p.paused || p.steps[p.at].Time > late/2
}

// name is the operation that was enqueued last, or will be.
func (p *Player) name() string {
	for i := range p.steps {
		if s := &p.steps[(p.at+i)%len(p.steps)]; s.Kind == Programs {
			return s.Name
		}
	}
	return ""
}

func (s State) String() string {
	switch s {
	case Working:
		return "working"
	case Resting:
		return "resting"
	case Waiting:
		return "waiting"
	}
	return fmt.Sprint(int(s))
}
