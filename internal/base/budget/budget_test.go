package budget

import (
	"os"
	"testing"
	"time"
)

// anna is the first of some users who are neither root nor the one who runs the tests.
var anna = os.Getuid() + 1000

func TestAcquire(t *testing.T) {
	var said []Refusal
	p := NewPool("things", Limit{PerUID: 4, All: 10, Reserve: 2}, func(r Refusal) { said = append(said, r) })
	for i, c := range []struct {
		uid  int
		n    int64
		want bool
	}{
		{uid: anna, n: 4, want: true},
		{uid: anna, n: 1, want: false}, // its own limit
		{uid: anna + 1, n: 3, want: true},
		{uid: anna + 2, n: 2, want: false}, // the reserve
		{uid: anna + 2, n: 1, want: true},
		{uid: anna + 3, n: 1, want: false},
		{uid: 0, n: 2, want: true}, // root takes the reserve
		{uid: 0, n: 1, want: false},
		{uid: anna, n: 1, want: false}, // again: not reported a second time
	} {
		if got := p.Acquire(c.uid, c.n); got != c.want {
			t.Errorf("step %d: uid %d takes %d: %v, want %v", i, c.uid, c.n, got, c.want)
		}
	}
	if len(said) != 4 || said[0].UID != anna || said[0].Used != 4 || said[0].Budget != "things" {
		t.Errorf("reported %+v", said)
	}
	s := p.State()
	if s.Used != 10 || s.Refused != 5 || s.Users[0] != (User{anna, 4, 2}) {
		t.Errorf("state %+v", s)
	}
	for uid, n := range map[int]int64{anna: 4, anna + 1: 3, anna + 2: 1, 0: 2} {
		p.Release(uid, n)
	}
	if p.Used() != 0 {
		t.Errorf("%d left", p.Used())
	}
	if !p.Try(anna, 4) || p.Try(anna, 1) || p.State().Refused != 5 {
		t.Errorf("a try is no take, or is counted: %+v", p.State())
	}
	p.Release(anna, 4)
	if p.Over(anna) || p.Of(anna) != 0 {
		t.Error("who has nothing has too much")
	}
	before := p.State().Refused
	p.Force(anna, 100)
	if !p.Over(anna) || p.Of(anna) != 100 || p.State().Refused != before+1 {
		t.Errorf("what was forced is not over the limit, or not counted: %+v", p.State())
	}
	if p.Acquire(anna, 1) {
		t.Error("a user over the limit took more")
	}
}

// Users who come, are refused and go leave no memory behind.
func TestUsersAreForgotten(t *testing.T) {
	p := NewPool("things", Limit{PerUID: 1, All: 1 << 40}, nil)
	for uid := 1; uid < 10*maxRefused; uid++ {
		p.Acquire(uid, 1)
		p.Acquire(uid, 1) // refused
		p.Release(uid, 1)
	}
	if n := len(p.users); n > maxRefused+1 {
		t.Errorf("%d users are remembered", n)
	}
	if n := len(p.State().Users); n > maxListed {
		t.Errorf("%d users are listed", n)
	}
}

func TestReleaseTooMuch(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("more was released than acquired, without a panic")
		}
	}()
	NewPool("things", Divide(8), nil).Release(1, 1)
}

func TestMeter(t *testing.T) {
	m := Meter{Part: 10}
	now := time.Now()
	if m.Spent(now) != 0 {
		t.Error("it begins with something")
	}
	m.Add(time.Second, now)
	m.Add(time.Second, now.Add(5*time.Second))
	for after, want := range map[time.Duration]time.Duration{5 * time.Second: 1500 * time.Millisecond, 10 * time.Second: time.Second, time.Hour: 0} {
		t.Run("after "+after.String(), func(t *testing.T) {
			if got := m.Spent(now.Add(after)); got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

func TestLeft(t *testing.T) {
	l := Limit{PerUID: 10, All: 40, Reserve: 5}
	for _, c := range []struct {
		name       string
		uid        int
		own, total int64
		want       int64
	}{
		{"nothing used", 60000, 0, 0, 10},
		{"own limit", 60000, 4, 4, 6},
		{"reserve for root", 60000, 0, 30, 5},
		{"forced above the limit", 60000, 12, 12, -2},
		{"root", 0, 30, 30, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := l.Left(c.uid, c.own, c.total); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
	p := NewPool("x", l, nil)
	p.Force(60000, 10)
	if p.Fits(60000, 1) || !p.Fits(60001, 10) || !p.Fits(0, 100) {
		t.Error("what fits into a user's own limit")
	}
}
