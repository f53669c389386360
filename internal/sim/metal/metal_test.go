package metal

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Reexec()
	if code, done := InPrivateShm(); done {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, o Options) *Process {
	t.Helper()
	p, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.End(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func do(t *testing.T, p *Process, commands ...string) (last Reply) {
	t.Helper()
	for _, c := range commands {
		var err error
		if last, err = p.Do(c); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

func TestSmoke(t *testing.T) {
	p := start(t, Options{})
	do(t, p, "name python", "open 77 3", "alloc 77 dram 1M", "alloc 77 l1 4K elsewhere", "free 77 dram 1K")
	t.Log(p.PID, p.Held)
	c := start(t, Options{Container: true, PID: 7})
	r := do(t, c, "open 77", "alloc 77 trace 5")
	t.Log(c.PID, r)
	u := start(t, Options{UID: 65534})
	_, err := u.Do("open 77")
	t.Log(err)
	b, _ := os.ReadFile("/dev/shm/tt_device_77_memory")
	t.Log(len(b), b[:100])
}
