package tui

import (
	"os/signal"
	"syscall"
	"time"
)

// stopWait is how long to wait for a stop signal to take effect before
// concluding that nothing stops us: a process group without a shell that
// could continue it is never stopped by SIGTSTP.
const stopWait = 300 * time.Millisecond

// suspend gives the terminal back, stops the whole job like Ctrl-Z in any
// other program, and takes the terminal again when the shell continues it.
func (l *loop) suspend() {
	if err := l.screen.Suspend(); err != nil {
		return
	}
	signal.Reset(syscall.SIGTSTP)
	for len(l.signals) > 0 { // an old SIGCONT must not wake us
		<-l.signals
	}
	// Signals reach us some time after kill returns. Taking the terminal back
	// in between would leave it raw under the shell: wait for the continue.
	if err := syscall.Kill(0, syscall.SIGTSTP); err == nil {
		select {
		case <-l.signals:
		case <-time.After(stopWait):
		}
	}
	signal.Notify(l.signals, syscall.SIGTSTP, syscall.SIGCONT)
	// The terminal may be gone by now; then reading from it says so.
	_ = l.screen.Resume()
}
