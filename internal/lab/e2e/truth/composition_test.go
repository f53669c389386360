package truth

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

// composition is a random host: programs with known holdings, what happens to
// them and to ttmond, and who looks at the end. A seed makes always the same one.
type composition struct {
	Seed     uint64
	Boards   string
	Uprobe   bool      `json:",omitempty"` // ttmond watches allocators
	Programs []program // by number, as steps name them
	Steps    []step
	Viewers  []viewer
}

// program is one that holds memory, or has a device open and holds nothing.
type program struct {
	Kind       kind
	Release    string `json:",omitempty"` // of the real ttnn
	Layout     int    `json:",omitempty"` // of the region that a scripted process keeps
	Library    bool   `json:",omitempty"` // it runs under ttmon run
	Silent     bool   `json:",omitempty"` // tt-metal's statistics are switched off
	UID        int    `json:",omitempty"`
	Container  bool   `json:",omitempty"` // in a pid namespace of its own
	PrivateShm bool   `json:",omitempty"` // the container has its own /dev/shm
	Chip       int    // which of the host's chips it is on
	Mesh       bool   `json:",omitempty"` // it holds the same on all chips
	OpenAll    bool   `json:",omitempty"` // it has all devices open, not only its own
	MiB        uint64 // what it allocates first
}

// kind is what a program is.
type kind string

const (
	standIn  kind = "stand-in" // a C program with a library that looks like tt-metal's; it keeps no region
	scripted kind = "scripted" // a process that accounts in a region as tt-metal does; its library cannot be watched
	realTTNN kind = "ttnn"
	reports  kind = "reports" // an old client that reports to ttmond's socket
	sleeper  kind = "sleeper" // not a tt-metal program
	linked   kind = "linked"  // tt-metal is linked into it, so that nothing shows what it holds
)

// step is one thing that happens. Program is the number of the one it happens to.
type step struct {
	Do      verb
	Program int    `json:",omitempty"`
	MiB     uint64 `json:",omitempty"`
}

// verb is what happens in a step.
type verb string

const (
	begin      verb = "begin"
	allocMore  verb = "alloc"
	allocElse  verb = "alloc in a thread"
	allocL1    verb = "alloc in L1"
	freeFirst  verb = "free" // what it allocated first
	forkAlloc  verb = "fork" // the child allocates and stays
	spawn      verb = "spawn"
	becomes    verb = "exec" // the program execs, and holds nothing any more
	killed9    verb = "kill"
	ends       verb = "end"
	ttmondOn   verb = "ttmond starts"
	ttmondOff  verb = "ttmond restarts"
	ttmondDie  verb = "ttmond is killed and starts"
	ttmondAway verb = "ttmond is killed and starts after a while"
	takeover   verb = "ttmond is taken over"
)

// ofDaemon reports whether a step happens to ttmond, not to a program.
func (v verb) ofDaemon() bool {
	return v == ttmondOn || v == ttmondOff || v == ttmondDie || v == ttmondAway || v == takeover
}

// viewer is who looks: a user, through ttmond or without it, from the host or
// from a container.
type viewer struct {
	UID       int  `json:",omitempty"`
	Direct    bool `json:",omitempty"`
	Container bool `json:",omitempty"`
}

func (v viewer) String() string {
	text := "root"
	if v.UID != 0 {
		text = fmt.Sprintf("user %d", v.UID)
	}
	if v.Container {
		text += " in a container"
	}
	if v.Direct {
		return text + " without ttmond"
	}
	return text + " through ttmond"
}

// String is the composition as a person reads it.
func (c composition) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d on %s", c.Seed, c.Boards)
	if c.Uprobe {
		b.WriteString(", ttmond watches allocators")
	}
	for i, p := range c.Programs {
		fmt.Fprintf(&b, "\n  program %d: %s", i, p)
	}
	for _, s := range c.Steps {
		fmt.Fprintf(&b, "\n  %s", s.Do)
		if !s.Do.ofDaemon() {
			fmt.Fprintf(&b, " %d", s.Program)
		}
		if s.MiB != 0 {
			fmt.Fprintf(&b, ", %d MiB", s.MiB)
		}
	}
	for _, v := range c.Viewers {
		fmt.Fprintf(&b, "\n  seen by %s", v)
	}
	return b.String()
}

func (p program) String() string {
	text := string(p.Kind)
	add := func(holds bool, format string, args ...any) {
		if holds {
			text += ", " + fmt.Sprintf(format, args...)
		}
	}
	add(p.Release != "", "%s", p.Release)
	add(p.Layout != 0, "layout %d", p.Layout)
	add(p.Library, "under ttmon run")
	add(p.Silent, "statistics off")
	add(p.UID != 0, "user %d", p.UID)
	add(p.Container, "in a container")
	add(p.PrivateShm, "with its own /dev/shm")
	add(!p.Mesh, "chip %d", p.Chip)
	add(p.Mesh, "a mesh of all chips")
	add(p.OpenAll, "all devices open")
	add(p.MiB != 0, "%d MiB", p.MiB)
	return text
}

func (c composition) encode() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}

// chipsOf is how many chips the boards of compositions have.
var chipsOf = map[string]int{"p150a": 1, "n150": 1, "n300": 2, "p150a,p150a": 2, "n300,p150a": 3, "p300c": 2}

// compose makes the composition of a seed.
func compose(seed uint64) composition {
	r := rand.New(rand.NewPCG(seed, 23))
	boards := []string{"p150a", "n150", "n300", "p150a,p150a", "n300,p150a", "p300c"}
	c := composition{Seed: seed, Boards: boards[r.IntN(len(boards))]}
	daemon := r.IntN(4) > 0
	c.Uprobe = daemon && r.IntN(3) > 0
	withTTNN := r.IntN(7) == 0
	for i := range 1 + r.IntN(6) {
		c.Programs = append(c.Programs, randomProgram(r, c.Boards, daemon, withTTNN && i == 0))
	}
	c.begins(r, daemon)
	for range r.IntN(5) {
		if s, ok := c.randomStep(r, daemon); ok {
			c.Steps = append(c.Steps, s)
		}
	}
	c.Viewers = c.randomViewers(r, daemon)
	return c
}

func randomProgram(r *rand.Rand, boards string, daemon, real bool) program {
	p := program{Chip: r.IntN(chipsOf[boards]), OpenAll: r.IntN(3) == 0, MiB: 64 * (1 + r.Uint64N(32))}
	switch n := r.IntN(20); {
	case real:
		p.Kind, p.Chip, p.OpenAll = realTTNN, 0, true
		p.Release = []string{ttnn.Newest, ttnn.AllThreads}[r.IntN(2)]
		p.Silent = r.IntN(4) == 0
		p.Mesh = (boards == "n300" || boards == "p300c") && r.IntN(2) == 0
	case n < 10:
		p.Kind = standIn
	case n < 16:
		p.Kind, p.Layout = scripted, []int{3, 3, 3, 4}[r.IntN(4)]
		p.Silent = r.IntN(6) == 0
	case n < 18 && daemon:
		p.Kind, p.OpenAll = reports, false
	case p.MiB%128 == 0:
		p.Kind = linked
	default:
		p.Kind, p.MiB = sleeper, 0
	}
	if p.Kind != reports && p.Kind != realTTNN { // whose Python only root can reach
		p.UID = []int{0, 0, 0, 1000, 1001}[r.IntN(5)]
	}
	switch p.Kind {
	case standIn, realTTNN:
		p.Library = r.IntN(3) == 0
		p.Container = r.IntN(5) == 0
	case scripted:
		p.Container = r.IntN(4) == 0
	}
	p.PrivateShm = p.Container && r.IntN(2) == 0
	return p
}

// begins puts the beginnings of programs and of ttmond in an order: who
// reports begins after ttmond.
func (c *composition) begins(r *rand.Rand, daemon bool) {
	for i := range c.Programs {
		c.Steps = append(c.Steps, step{Do: begin, Program: i})
	}
	r.Shuffle(len(c.Steps), func(i, k int) { c.Steps[i], c.Steps[k] = c.Steps[k], c.Steps[i] })
	if !daemon {
		return
	}
	at := r.IntN(len(c.Steps) + 1)
	if r.IntN(3) == 0 {
		at = 0
	}
	c.Steps = slices.Insert(c.Steps, at, step{Do: ttmondOn})
	slices.SortStableFunc(c.Steps, func(a, b step) int { return c.phase(a) - c.phase(b) })
}

// phase is 1 for what has to begin after ttmond, whenever that is.
func (c *composition) phase(s step) int {
	if s.Do == begin && c.Programs[s.Program].Kind == reports {
		return 1
	}
	return 0
}

// randomStep is something that can happen to what there is.
func (c *composition) randomStep(r *rand.Rand, daemon bool) (s step, ok bool) {
	if daemon && r.IntN(3) == 0 {
		s.Do = []verb{ttmondOff, ttmondDie, ttmondAway, takeover, takeover, takeover}[r.IntN(6)]
		return s, s.Do == takeover || !c.hasReporter()
	}
	s.Program = r.IntN(len(c.Programs))
	if slices.ContainsFunc(c.Steps, func(o step) bool {
		return o.Program == s.Program && (o.Do == killed9 || o.Do == ends || o.Do == becomes)
	}) {
		return s, false
	}
	can := verbsOf[c.Programs[s.Program].Kind]
	s.Do = can[r.IntN(len(can))]
	if s.Do == freeFirst && slices.ContainsFunc(c.Steps, func(o step) bool { return o.Program == s.Program && o.Do == freeFirst }) {
		return s, false
	}
	switch s.Do {
	case allocMore, allocElse, forkAlloc:
		s.MiB = 64 * (1 + r.Uint64N(32))
	case allocL1:
		s.MiB = 1 + r.Uint64N(8)
	}
	return s, true
}

// hasReporter reports whether a program speaks to ttmond's socket. Old clients
// do not connect again: they outlive a takeover of ttmond, but no restart.
func (c *composition) hasReporter() bool {
	return slices.ContainsFunc(c.Programs, func(p program) bool { return p.Kind == reports })
}

// verbsOf is what programs of a kind can do.
var verbsOf = map[kind][]verb{
	standIn:  {allocMore, allocElse, freeFirst, forkAlloc, forkAlloc, spawn, becomes, killed9, ends},
	scripted: {allocMore, allocElse, allocL1, freeFirst, forkAlloc, becomes, killed9, ends},
	realTTNN: {allocMore, allocElse, allocL1, freeFirst, forkAlloc, killed9, ends},
	reports:  {ends},
	sleeper:  {ends},
	linked:   {allocMore, ends},
}

func (c *composition) randomViewers(r *rand.Rand, daemon bool) (list []viewer) {
	for range 1 + r.IntN(3) {
		v := viewer{Direct: !daemon || r.IntN(2) == 0}
		switch r.IntN(5) {
		case 0: // the owner of a program
			v.UID = c.Programs[r.IntN(len(c.Programs))].UID
		case 1:
			v.UID = nobody
		case 2:
			v.Container = true
		}
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// simpler lists compositions with one part less, or a simpler one: first those
// that take most away.
func (c composition) simpler() (list []composition) {
	add := func(change func(d *composition)) {
		var d composition
		if err := json.Unmarshal([]byte(c.encode()), &d); err != nil {
			panic("BUG: " + err.Error())
		}
		change(&d)
		if d.valid() && d.encode() != c.encode() {
			list = append(list, d)
		}
	}
	for i := range c.Programs {
		add(func(d *composition) { d.dropProgram(i) })
	}
	for i := range c.Viewers {
		if len(c.Viewers) > 1 {
			add(func(d *composition) { d.Viewers = []viewer{d.Viewers[i]} })
		}
	}
	for i, s := range c.Steps {
		if s.Do != begin {
			add(func(d *composition) { d.Steps = slices.Delete(d.Steps, i, i+1) })
		}
	}
	for i := range c.Programs {
		add(func(d *composition) { d.Programs[i].Container, d.Programs[i].PrivateShm = false, false })
		add(func(d *composition) { d.Programs[i].PrivateShm = false })
		add(func(d *composition) { d.Programs[i].UID = 0 })
		add(func(d *composition) { d.Programs[i].Library = false })
		add(func(d *composition) { d.Programs[i].Silent = false })
		add(func(d *composition) { d.Programs[i].OpenAll = d.Programs[i].Kind == realTTNN })
		add(func(d *composition) { d.Programs[i].Mesh = false })
		if c.Programs[i].Kind == realTTNN {
			add(func(d *composition) {
				d.Programs[i] = program{Kind: standIn, Library: d.Programs[i].Library, MiB: d.Programs[i].MiB}
			})
		}
	}
	for i := range c.Viewers {
		add(func(d *composition) { d.Viewers[i] = viewer{Direct: d.Viewers[i].Direct} })
	}
	add(func(d *composition) { d.Uprobe = false })
	if chipsOf[c.Boards] > 1 {
		add(func(d *composition) {
			d.Boards = "p150a"
			for i := range d.Programs {
				d.Programs[i].Chip, d.Programs[i].Mesh = 0, false
			}
		})
	}
	return list
}

// dropProgram takes a program away, with what it does.
func (c *composition) dropProgram(n int) {
	c.Programs = slices.Delete(c.Programs, n, n+1)
	c.Steps = slices.DeleteFunc(c.Steps, func(s step) bool { return !s.Do.ofDaemon() && s.Program == n })
	for i := range c.Steps {
		if !c.Steps[i].Do.ofDaemon() && c.Steps[i].Program > n {
			c.Steps[i].Program--
		}
	}
}

// valid reports whether a composition can be played: everything that needs
// ttmond comes while there is one.
func (c composition) valid() bool {
	daemon := false
	for _, s := range c.Steps {
		switch {
		case s.Do == ttmondOn:
			daemon = true
		case s.Do.ofDaemon() && !daemon, s.Do.ofDaemon() && s.Do != takeover && c.hasReporter():
			return false
		case s.Do == begin && c.Programs[s.Program].Kind == reports && !daemon:
			return false
		case !s.Do.ofDaemon() && s.Do != begin && !slices.Contains(verbsOf[c.Programs[s.Program].Kind], s.Do):
			return false
		}
	}
	return len(c.Programs) > 0 && len(c.Viewers) > 0 &&
		(daemon || !slices.ContainsFunc(c.Viewers, func(v viewer) bool { return !v.Direct })) && (daemon || !c.Uprobe)
}
