package uprobe

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Who waits for mappings and is told to end writes nothing once it is closed:
// the number of its descriptor may be that of a client, or of a file of the
// history.
func TestEndOfWaitWritesNowhereElse(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var reusers []int // of the numbers of the two descriptors of each
	for range 200 {
		w, err := newMmapWatch()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		w.Close()
		reusers = append(reusers, eventfd(t), eventfd(t))
	}
	for _, fd := range reusers {
		var b [8]byte
		if n, err := unix.Read(fd, b[:]); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("%d bytes were written to another's descriptor %d (%v)", n, fd, err)
		}
	}
}

// eventfd is one that is closed at the end.
func eventfd(t *testing.T) int {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// TestCPUsComeOnline: a CPU that comes online gets a ring, and what was mapped on it
// before counts as lost; one that goes offline and comes back gets a new one.
func TestCPUsComeOnline(t *testing.T) {
	w, err := newMmapWatch()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	all, err := onlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	check := func(online []int, want bool) {
		t.Helper()
		w.online = func() ([]int, error) { return online, nil }
		w.checked = time.Time{}
		if _, incomplete := w.read(); incomplete != want || len(w.rings) != len(online) {
			t.Errorf("incomplete is %v, %d rings for CPUs %v", incomplete, len(w.rings), online)
		}
	}
	if w.open(all[0]) != nil {
		t.Skip("the kernel has no records of mappings for us")
	}
	check(all[:1], false)
	check(nil, false)
	check(all[:1], true)
	check(all, len(all) > 1)
	check(all, false)
	w.online = func() ([]int, error) { return nil, errors.New("not readable") }
	w.checked = time.Time{}
	if _, incomplete := w.read(); !incomplete || len(w.rings) != len(all) {
		t.Errorf("incomplete is %v, %d rings where the CPUs are not known", incomplete, len(w.rings))
	}
}
