package kinds

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/sim/metal"
	"github.com/ttmon/ttmon/internal/sim/workload"
)

const reportUsage = `kind=report        report allocations on the old socket, as instrumented programs do
  socket=PATH        of the allocation server (/tmp/tt_allocation_server.sock)
  dram=8G            bytes held on each device; also l1=, l1_small=, trace=, cb=, kernel=
  buffers=100        buffers that each of these amounts is made of (1)
  rate=1000          then so many messages a second, allocating and freeing in turn
  size=1M            bytes of each of those buffers (64K)
  batch=32           messages in one write (1)
  lib=PATH           map PATH, as a program does that tt-metal's library is linked to
  message=144        bytes of a message: 72, 112, 128 or 144
  die=5s             be killed after that time, with everything still allocated`

// The old protocol: message types and tt-metal's own codes of buffer types.
const (
	msgAlloc      = 1
	msgFree       = 2
	msgCBAlloc    = 8
	msgKernelLoad = 10
	headerBytes   = 40
)

// reported are the amounts, in the order they are reported.
var reported = []struct {
	pool       string
	kind, code byte
}{
	{"dram", msgAlloc, 0},
	{"l1", msgAlloc, 1},
	{"l1_small", msgAlloc, 3},
	{"trace", msgAlloc, 4},
	{"cb", msgCBAlloc, 0},
	{"kernel", msgKernelLoad, 0},
}

// reportSettings is how a reporting workload behaves.
type reportSettings struct {
	socket  string
	amounts map[string]uint64
	buffers uint64
	rate    uint64
	size    uint64
	batch   uint64
	message uint64
	lib     string
	die     time.Duration
}

func parseReport(p workload.Params) (reportSettings, error) {
	r := reportSettings{
		socket: "/tmp/tt_allocation_server.sock", amounts: map[string]uint64{},
		buffers: 1, size: 64 << 10, batch: 1, message: 144,
	}
	for _, key := range slices.Sorted(maps.Keys(p)) {
		var err error
		switch text := p[key]; key {
		case "socket":
			r.socket = text
		case "lib":
			r.lib = text
		case "dram", "l1", "l1_small", "trace", "cb", "kernel":
			r.amounts[key], err = workload.ParseBytes(text)
		case "size":
			r.size, err = workload.ParseBytes(text)
		case "buffers":
			r.buffers, err = strconv.ParseUint(text, 10, 32)
		case "rate":
			r.rate, err = strconv.ParseUint(text, 10, 32)
		case "batch":
			r.batch, err = strconv.ParseUint(text, 10, 16)
		case "message":
			r.message, err = strconv.ParseUint(text, 10, 16)
		case "die":
			r.die, err = time.ParseDuration(text)
		default:
			return r, fmt.Errorf("no setting %q of kind report; there are:\n%s", key, reportUsage)
		}
		if err != nil {
			return r, fmt.Errorf("%s=%s: %w", key, p[key], err)
		}
	}
	if !slices.Contains([]uint64{72, 112, 128, 144}, r.message) {
		return r, fmt.Errorf("message=%d: no client ever sent that; 72, 112, 128 or 144", r.message)
	}
	if r.buffers == 0 || r.batch == 0 || r.size == 0 {
		return r, fmt.Errorf("buffers, batch and size must be at least 1")
	}
	return r, nil
}

// report plays a program with the old instrumentation: it says what it
// allocates, and blocks without a listener, as those do.
func report(ctx context.Context, s workload.Spec, link workload.Link) error {
	r, err := parseReport(s.Params)
	if err != nil {
		return err
	}
	chips, err := chipsOf(s)
	if err != nil {
		return err
	}
	if r.lib != "" {
		library, err := metal.MapLibrary(r.lib)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Munmap(library) }()
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", r.socket)
	if err != nil {
		return fmt.Errorf("connecting to the allocation server: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	w := &reporter{conn: conn, reportSettings: r}
	for _, c := range chips {
		if err := w.hold(c.logical); err != nil {
			return ended(ctx, err)
		}
	}
	link.Ready()
	if r.die > 0 {
		time.AfterFunc(r.die, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
	if r.rate > 0 && len(chips) > 0 {
		return ended(ctx, w.churn(ctx, chips))
	}
	<-ctx.Done()
	return nil
}

// ended hides errors of a connection that is over: closed by us, or by a
// server that ended, of which the old client dies without a word as well.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

// reporter writes messages.
type reporter struct {
	reportSettings
	conn   net.Conn
	buf    []byte
	queued uint64
	next   uint64 // address of the next buffer
}

// hold reports the amounts that are held throughout.
func (w *reporter) hold(device int) error {
	for _, a := range reported {
		amount := w.amounts[a.pool]
		for i := range w.buffers {
			size := amount / w.buffers
			if i == w.buffers-1 {
				size = amount - size*(w.buffers-1)
			}
			if size == 0 {
				continue
			}
			w.next += 1 << 20
			if err := w.say(a.kind, a.code, device, size, w.next); err != nil {
				return err
			}
		}
	}
	return w.flush()
}

// churn allocates and frees at the wanted rate, a batch at a time.
func (w *reporter) churn(ctx context.Context, chips []chipRef) error {
	first := w.next + 1<<20
	begin, sent := time.Now(), uint64(0)
	for ctx.Err() == nil {
		due := uint64(time.Since(begin).Seconds() * float64(w.rate))
		if sent+w.batch > due {
			time.Sleep(time.Duration(float64(sent+w.batch-due) / float64(w.rate) * float64(time.Second)))
			continue
		}
		// Message 2n allocates buffer n, message 2n+1 frees it again.
		n := sent / 2
		device, id := chips[n%uint64(len(chips))].logical, first+n%1024<<12
		kind, size := byte(msgAlloc), w.size
		if sent%2 == 1 {
			kind, size = msgFree, 0
		}
		if err := w.say(kind, 0, device, size, id); err != nil {
			return err
		}
		sent++
	}
	return nil
}

// say queues a message and writes when a batch is full.
func (w *reporter) say(kind, code byte, device int, size, id uint64) error {
	start := len(w.buf)
	w.buf = append(w.buf, make([]byte, w.message)...)
	m := w.buf[start:]
	m[0] = kind
	binary.LittleEndian.PutUint32(m[4:], uint32(device))
	binary.LittleEndian.PutUint64(m[8:], size)
	m[16] = code
	binary.LittleEndian.PutUint32(m[20:], uint32(os.Getpid()))
	binary.LittleEndian.PutUint64(m[24:], id)
	if kind != msgFree {
		binary.LittleEndian.PutUint64(m[32:headerBytes], uint64(time.Now().UnixNano()))
	}
	if w.queued++; w.queued < w.batch {
		return nil
	}
	return w.flush()
}

func (w *reporter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.conn.Write(w.buf)
	w.buf, w.queued = w.buf[:0], 0
	return err
}
