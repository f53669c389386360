package driver

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// kernelLog is /dev/kmsg of the simulated host: only what driver and firmware
// wrote. Unlike the real file it gives more than one record at a time.
type kernelLog struct {
	mu       sync.Mutex
	text     []byte
	sequence uint64
}

func (l *kernelLog) file() *tree.File {
	return &tree.File{Mode: 0o644, Binary: true, Show: func(tree.Caller) ([]byte, syscall.Errno) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.text, 0
	}}
}

// maxLog bounds the log: what a simulated host runs for is shorter.
const maxLog = 1 << 20

func (l *kernelLog) add(level int, bdf, text string) {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	micro := time.Duration(ts.Nano()).Microseconds()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) > maxLog {
		return
	}
	l.sequence++
	l.text = fmt.Appendf(l.text, "%d,%d,%d,-;tenstorrent %s: %s\n SUBSYSTEM=pci\n DEVICE=+pci:%s\n", level, l.sequence, micro, bdf, text, bdf)
}

// Log writes a line about the device into the kernel's log.
func (d *Device) Log(level int, text string) { d.driver.log.add(level, d.BDF(), text) }
