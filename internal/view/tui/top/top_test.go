package top

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // times on the screens
	os.Exit(m.Run())
}

// stage is a screen under test.
type stage struct {
	t       *testing.T
	s       *State
	g       *cells.Grid
	effects []tui.Effect
	n, sec  int
	make    func(n, second int) *model.Snapshot // the host; nil: tuitest.Host
}

// made keeps hosts: making one takes longer than drawing it, and no test
// changes them.
var made = map[[2]int]*model.Snapshot{}

func (st *stage) host(n, second int) *model.Snapshot {
	if st.make != nil {
		return st.make(n, second)
	}
	key := [2]int{n, second}
	if made[key] == nil {
		made[key] = tuitest.Host(n, second)
	}
	return made[key]
}

// open shows a host with n devices on a screen of w by h, after two minutes.
func open(t *testing.T, n, w, h int, change ...func(*config.Config)) *stage {
	t.Helper()
	return openAfter(t, 120, n, w, h, change...)
}

func openAfter(t *testing.T, seconds, n, w, h int, change ...func(*config.Config)) *stage {
	t.Helper()
	c := config.Default()
	for _, f := range change {
		f(&c)
	}
	s, err := New(Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	st := &stage{t: t, s: s, g: cells.NewGrid(w, h), n: n}
	st.send(tui.Resize{W: w, H: h})
	st.run(seconds)
	return st
}

// run lets seconds pass.
func (st *stage) run(seconds int) {
	for range seconds {
		st.send(tui.Sample{Snapshot: st.host(st.n, st.sec)})
		st.sec++
	}
}

func (st *stage) send(ev tui.Event) {
	st.effects = append(st.effects, st.s.Update(ev)...)
}

// keys presses keys, drawing after each as the loop does.
func (st *stage) keys(keys ...tui.Key) *stage {
	for _, k := range keys {
		st.draw()
		st.send(k)
	}
	return st
}

func (st *stage) draw() string {
	st.g.Resize(st.g.W, st.g.H)
	st.s.Draw(st.g)
	return st.g.String()
}

// find is the cell at which a text begins.
func (st *stage) find(text string) (x, y int) {
	st.t.Helper()
	for y, row := range strings.Split(st.draw(), "\n") {
		if i := strings.Index(row, text); i >= 0 {
			return len([]rune(row[:i])), y
		}
	}
	st.t.Fatalf("%q is not on the screen:\n%s", text, st.g)
	return 0, 0
}

func (st *stage) has(text string) bool { return strings.Contains(st.draw(), text) }
