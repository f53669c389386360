package chipread

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

// Stages that a reader reports before each step that may not return, ahead of
// its answer.
const (
	StageHeartbeat byte = 'h' // it reads the driver's file
	StageChip      byte = 'c' // it reads the chip
)

const maxRequest = 256 << 10

// fresh is how old the heartbeat may be when the chip is read: one that took
// longer was held up by a reset.
const fresh = 500 * time.Millisecond

// Main is the whole life of a reader: its request comes from standard input, its
// stages and answer go to standard output. It returns the exit code.
func Main() int {
	// One thread reads; collecting garbage and growing the heap are for longer
	// lives.
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	setName("ttmond-reader")
	debug.SetPanicOnFault(true)
	var r Request
	text, err := readRequest()
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ttmond: reading a chip: request:", err)
		return 2
	}
	bus, heartbeat, answer := prepare(&r)
	if answer.Cause == "" {
		if err := confine(&r); err != nil {
			fmt.Fprintln(os.Stderr, "ttmond: reading a chip:", err)
			return 1
		}
		answer = run(bus, heartbeat, &r)
	}
	out, err := json.Marshal(answer)
	if err != nil {
		return 1
	}
	for len(out) > 0 {
		n, err := unix.Write(1, out)
		if err != nil {
			return 1
		}
		out = out[n:]
	}
	return 0
}

// readRequest reads standard input without Go's poller, whose calls are not on
// the list.
func readRequest() ([]byte, error) {
	var text []byte
	buf := make([]byte, 4096)
	for len(text) < maxRequest {
		n, err := unix.Read(0, buf)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case n == 0:
			return text, nil
		default:
			text = append(text, buf[:n]...)
		}
	}
	return nil, errors.New("it is too long")
}

// prepare opens what needs no chip: the files of sysfs.
func prepare(r *Request) (bus *kernel, heartbeat int, answer Response) {
	bus, heartbeat = &kernel{resource: -1}, -1
	var err error
	if r.Heartbeat != "" {
		if heartbeat, err = unix.Open(r.Heartbeat, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return bus, heartbeat, failed(openFailure(err))
		}
	}
	if r.Way == model.ByResource {
		if bus.resource, err = unix.Open(r.Path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return bus, heartbeat, failed(openFailure(err))
		}
	}
	return bus, heartbeat, Response{}
}

// run reads the heartbeat, which the driver fences, and then at once the chip.
func run(bus Bus, heartbeat int, r *Request) Response {
	if heartbeat >= 0 {
		report(StageHeartbeat)
		begun := time.Now()
		var b [64]byte
		n, err := unix.Pread(heartbeat, b[:], 0)
		if cause := heartbeatCause(string(b[:max(n, 0)]), err, time.Since(begun)); cause != "" {
			answer := Response{Cause: cause}
			if e, ok := errors.AsType[unix.Errno](err); ok {
				answer.Errno = int(e)
			}
			return answer
		}
	}
	report(StageChip)
	return Read(bus, r)
}

// heartbeatCause is why a chip is not to be read after its heartbeat was.
func heartbeatCause(text string, err error, took time.Duration) model.TelemetryCause {
	switch {
	case errors.Is(err, unix.ENODATA), took > fresh:
		return model.ResetUnderWay
	case err != nil:
		return model.ChipGone
	case strings.TrimSpace(text) == "4294967295":
		return model.ReadAllOnes
	}
	return ""
}

// setName is what ps shows.
func setName(name string) {
	b := append([]byte(name), 0)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&b[0])), 0, 0, 0)
}

func report(stage byte) { _, _ = unix.Write(1, []byte{stage}) }
