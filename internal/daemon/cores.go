package daemon

import (
	"context"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A daemon works for some milliseconds in each second. With a second core Go wakes
// threads that find nothing to do, its monitor polls longer for each of them, and
// collecting garbage waits for all: a quarter of what an idle daemon takes. So it
// uses one core until it is busy, and then two: a long answer must not keep
// clients waiting. On a host with many more, Go would search them all.
const (
	maxCores = 2
	// coresEvery is how often it is decided.
	coresEvery = time.Second
	// busyShare of a core is more than an idle daemon ever uses; below idleShare it
	// is idle again.
	busyShare, idleShare = 0.25, 0.1
)

// UseFewCores makes Go use one core, and at most maxCores while AdjustCores runs.
// $GOMAXPROCS takes precedence.
func UseFewCores() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}

// AdjustCores uses a second core while the process is busy, until ctx is done.
func AdjustCores(ctx context.Context) error {
	if os.Getenv("GOMAXPROCS") != "" || runtime.NumCPU() == 1 {
		return nil
	}
	tick := time.NewTicker(coresEvery)
	defer tick.Stop()
	adjustCores(ctx, time.Now(), tick.C, processTime)
	return nil
}

// adjustCores decides at each tick. used is the processor time of the process so far.
func adjustCores(ctx context.Context, at time.Time, ticks <-chan time.Time, used func() time.Duration) {
	for before := used(); ; {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-ticks:
		}
		until, n := used(), runtime.GOMAXPROCS(0)
		if want := cores(n, (until-before).Seconds()/now.Sub(at).Seconds()); want != n {
			runtime.GOMAXPROCS(want)
		}
		before, at = until, now
	}
}

// cores is how many cores to use after a time in which a process that uses so many
// took a share of one.
func cores(now int, share float64) int {
	switch {
	case share > busyShare:
		return maxCores
	case share < idleShare:
		return 1
	}
	return now
}

// processTime is the processor time of this process so far.
func processTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic("BUG: no account of the process: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
