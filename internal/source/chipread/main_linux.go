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

const maxRequest = 1 << 20

// fresh is how old the heartbeat may be when the chip is read: one that took
// longer was held up by a reset.
const fresh = 500 * time.Millisecond

// Main is the whole life of a reader: its requests come from standard input, the
// stages and the answer of each go to standard output, a line for each. It returns
// the exit code.
func Main() int {
	// One thread reads; collecting garbage and growing the heap are for longer
	// lives.
	runtime.LockOSThread()
	runtime.GOMAXPROCS(1) // or the runtime looks for a new limit after a second, by calls that are not on the list
	debug.SetGCPercent(-1)
	setName("ttmond-reader")
	debug.SetPanicOnFault(true)
	var requests []Request
	text, err := readRequest()
	if err == nil {
		err = json.Unmarshal(text, &requests)
	}
	if err == nil && (len(requests) == 0 || len(requests) > MaxChips) {
		err = fmt.Errorf("%d chips", len(requests))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ttmond: reading chips: request:", err)
		return 2
	}
	chips, opensNode := make([]prepared, len(requests)), false
	for i := range requests {
		chips[i] = prepare(&requests[i])
		opensNode = opensNode || requests[i].OpensNode()
	}
	if err := confine(opensNode); err != nil {
		fmt.Fprintln(os.Stderr, "ttmond: reading chips:", err)
		return 1
	}
	for i := range requests {
		answer := chips[i].answer
		if answer.Cause == "" {
			answer = chips[i].run(&requests[i])
		}
		if write(answer) != nil {
			return 1
		}
	}
	return 0
}

// write writes one answer as a line.
func write(answer Response) error {
	out, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	out = append(out, '\n')
	for len(out) > 0 {
		n, err := unix.Write(1, out)
		if err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
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

// prepared is a chip whose files of sysfs are open.
type prepared struct {
	bus       *kernel
	heartbeat int      // -1: the driver has none
	answer    Response // with the cause, if one could not be opened
}

// prepare opens what needs no chip: the files of sysfs.
func prepare(r *Request) prepared {
	p := prepared{bus: &kernel{resource: -1}, heartbeat: -1}
	var err error
	if r.Heartbeat != "" {
		if p.heartbeat, err = unix.Open(r.Heartbeat, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			p.answer = failed(openFailure(err))
			return p
		}
	}
	if r.Way == model.ByResource {
		if p.bus.resource, err = unix.Open(r.Path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			p.answer = failed(openFailure(err))
		}
	}
	return p
}

// run reads the heartbeat, which the driver fences, and then at once the chip.
func (p *prepared) run(r *Request) Response {
	if p.heartbeat >= 0 {
		report(StageHeartbeat)
		begun := time.Now()
		var b [64]byte
		n, err := unix.Pread(p.heartbeat, b[:], 0)
		if cause := heartbeatCause(string(b[:max(n, 0)]), err, time.Since(begun)); cause != "" {
			answer := Response{Cause: cause}
			if e, ok := errors.AsType[unix.Errno](err); ok {
				answer.Errno = int(e)
			}
			return answer
		}
	}
	report(StageChip)
	return Read(p.bus, r)
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
