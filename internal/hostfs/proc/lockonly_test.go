package proc

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// A process whose descriptors of a device are all for the driver's locks is no
// user of it, until it maps the chip or opens it for good.
func TestLockOnly(t *testing.T) {
	tr := newTree(t, 2)
	c := start(t, nil, "hold")
	c.line()
	c.send("lock " + tr.node(0))
	c.send("lock " + tr.node(0))
	c.send("open " + tr.node(1))
	tr.show(c.pid)
	r := tr.reader()
	lists := [][]Openers{
		{listed(0, c.pid, c.pid), listed(1, c.pid)},
		{notListed(0), notListed(1)},
	}
	for i, l := range lists {
		t.Run(fmt.Sprint("list ", i), func(t *testing.T) {
			u := resolve(t, r, "2.10.0", l...)
			wantUses(t, u, use{c.pid, model.Running, 1, 1, false})
			if u.Locking != 2 {
				t.Errorf("%d descriptors only lock, want 2", u.Locking)
			}
		})
	}
	// A description that another process has by now may be of another kind.
	wantUses(t, resolve(t, r, "2.10.0", listed(0, c.pid, c.pid, c.pid)), use{c.pid, model.Running, 0, 3, false})
	c.send("map 0")
	wantUses(t, resolve(t, r, "2.10.0", lists[0]...), use{c.pid, model.Running, 0, 2, false}, use{c.pid, model.Running, 1, 1, false})
}

// A process that locks and uses a device is its user, with all descriptors.
func TestLocksAndUses(t *testing.T) {
	tr := newTree(t, 1)
	c := start(t, nil, "hold", tr.node(0))
	c.line()
	c.send("lock " + tr.node(0))
	tr.show(c.pid)
	u := resolve(t, tr.reader(), "2.10.0", listed(0, c.pid, c.pid))
	wantUses(t, u, use{c.pid, model.Running, 0, 2, false})
	if u.Locking != 0 {
		t.Errorf("%d descriptors only lock", u.Locking)
	}
}

func TestParseFlags(t *testing.T) {
	for text, want := range map[string]uint32{"\t02102002\n": 0o2102002, "0": 0, "": 0, "09": 0, "7777777777777": 0, "-1": 0} {
		t.Run(text, func(t *testing.T) {
			if got := parseFlags([]byte(text)); got != want {
				t.Errorf("%q: %o, want %o", text, got, want)
			}
		})
	}
}
