package workload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// The message types of the old protocol.
const (
	msgAlloc      = 1
	msgFree       = 2
	msgCBAlloc    = 8
	msgKernelLoad = 10
	headerBytes   = 40
)

// reporter is a program with the old instrumentation: it says what it
// allocates, and blocks without a listener, as those do.
type reporter struct {
	Socket  string `set:"socket=PATH" help:"of the allocation server (/tmp/tt_allocation_server.sock)"`
	DRAM    size   `set:"dram=8G" help:"bytes held on each device; also l1=, l1_small=, trace=, cb=, kernel="`
	L1      size   `set:"l1"`
	L1Small size   `set:"l1_small"`
	Trace   size   `set:"trace"`
	CB      size   `set:"cb"`
	Kernel  size   `set:"kernel"`
	Buffers int    `set:"buffers=100" in:"1 4294967295" help:"buffers that each of these amounts is made of (1)"`
	Rate    int    `set:"rate=1000" in:"0 4294967295" help:"then so many messages a second, allocating and freeing in turn"`
	Size    size   `set:"size=1M" help:"bytes of each of those buffers (64K)"`
	Batch   int    `set:"batch=32" in:"1 65535" help:"messages in one write (1)"`
	library
	Message int           `set:"message=144" help:"bytes of a message: 72, 112, 128 or 144"`
	Die     time.Duration `set:"die=5s" help:"be killed after that time, with everything still allocated"`

	conn   net.Conn
	buf    []byte
	queued int
	next   uint64 // address of the next buffer
}

func newReporter() kind {
	return &reporter{Socket: "/tmp/tt_allocation_server.sock", Buffers: 1, Size: 64 << 10, Batch: 1, Message: 144}
}

func (w *reporter) check() error {
	if !slices.Contains([]int{72, 112, 128, 144}, w.Message) {
		return fmt.Errorf("message=%d: no client ever sent that; 72, 112, 128 or 144", w.Message)
	}
	if w.Size == 0 {
		return fmt.Errorf("size must be at least 1")
	}
	return nil
}

func (w *reporter) run(ctx context.Context, _ Spec, chips []chipRef, link link) error {
	unmap, err := w.mapIt()
	if err != nil {
		return err
	}
	defer unmap()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", w.Socket)
	if err != nil {
		return fmt.Errorf("connecting to the allocation server: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	w.conn = conn
	for _, c := range chips {
		if err := w.hold(c.logical); err != nil {
			return ended(ctx, err)
		}
	}
	link.answer(ready)
	if w.Die > 0 {
		time.AfterFunc(w.Die, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
	if w.Rate > 0 && len(chips) > 0 {
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

// hold reports the amounts that are held throughout, with tt-metal's own codes
// of buffer types.
func (w *reporter) hold(device int) error {
	for _, a := range []struct {
		amount     size
		kind, code byte
	}{
		{w.DRAM, msgAlloc, 0},
		{w.L1, msgAlloc, 1},
		{w.L1Small, msgAlloc, 3},
		{w.Trace, msgAlloc, 4},
		{w.CB, msgCBAlloc, 0},
		{w.Kernel, msgKernelLoad, 0},
	} {
		left := uint64(a.amount)
		for i := range w.Buffers {
			bytes := uint64(a.amount) / uint64(w.Buffers)
			if i == w.Buffers-1 {
				bytes = left
			}
			left -= bytes
			if bytes == 0 {
				continue
			}
			w.next += 1 << 20
			if err := w.say(a.kind, a.code, device, bytes, w.next); err != nil {
				return err
			}
		}
	}
	return w.flush()
}

// churn allocates and frees at the wanted rate, a batch at a time.
func (w *reporter) churn(ctx context.Context, chips []chipRef) error {
	first := w.next + 1<<20
	begin, sent := time.Now(), 0
	for ctx.Err() == nil {
		due := int(time.Since(begin).Seconds() * float64(w.Rate))
		if missing := sent + w.Batch - due; missing > 0 {
			time.Sleep(time.Duration(float64(missing) / float64(w.Rate) * float64(time.Second)))
			continue
		}
		// Message 2n allocates buffer n, message 2n+1 frees it again.
		n := sent / 2
		device, id := chips[n%len(chips)].logical, first+uint64(n%1024)<<12
		kind, bytes := byte(msgAlloc), uint64(w.Size)
		if sent%2 == 1 {
			kind, bytes = msgFree, 0
		}
		if err := w.say(kind, 0, device, bytes, id); err != nil {
			return err
		}
		sent++
	}
	return nil
}

// say queues a message and writes when a batch is full.
func (w *reporter) say(kind, code byte, device int, size, id uint64) error {
	start := len(w.buf)
	w.buf = append(w.buf, make([]byte, w.Message)...)
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
	if w.queued++; w.queued < w.Batch {
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
