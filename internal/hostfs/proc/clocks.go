package proc

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime is the Unix time of the boot, in ns, by the clocks of this host.
func BootTime() int64 {
	return compareClocks(func() uint64 { return clock(unix.CLOCK_REALTIME) }, func() uint64 { return clock(unix.CLOCK_BOOTTIME) })
}

// compareClocks is by how much one clock is ahead of the other. Something may come
// between the readings, so one is read before and after the other, and the quickest
// of a few tries is believed. time.Now will not do: it reads two clocks itself, one
// after the other.
func compareClocks(wall, boot func() uint64) (ahead int64) {
	least := uint64(math.MaxUint64)
	for range 5 {
		before := boot()
		now := wall()
		took := boot() - before
		if took < least {
			least, ahead = took, int64(now)-int64(before+took/2)
		}
		if took < uint64(time.Microsecond) {
			break
		}
	}
	return ahead
}

func clock(id int32) uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(id, &ts)
	return uint64(ts.Nano())
}
