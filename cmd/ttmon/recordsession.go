package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/eventlog"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/recorder"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/version"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Times of a recording.
const (
	drainEvery = 50 * time.Millisecond  // what processes tell is read; their ring holds seconds of it
	sweepEvery = 250 * time.Millisecond // who tells is looked for
	blockAge   = time.Second            // what is not in the file yet when a recorder is killed
	settle     = 2 * time.Millisecond   // between a time that a process takes and its event
)

// sessionOptions are what is recorded, and where.
type sessionOptions struct {
	file     string
	replace  bool
	interval time.Duration
	output   bool
	command  []string
}

// session is a recording that is being made.
type session struct {
	*app
	o      sessionOptions
	w      *recording.Writer
	r      *recorder.Recorder
	meta   recording.Meta
	reader *track.Reader
	sweeps bool // we look for who tells; else the one who gave us the reader does
	seen   chan seen
	stop   context.CancelFunc
	done   chan struct{}
	lines  chan line
	swept  time.Time
	stream stream
	// comparing tells the one who looks that blocks are to be asked for.
	comparing atomic.Bool

	looked                 bool // at the host, with whatever success
	snapshots, allocations int
	last                   error // why there was no snapshot
}

// seen is what one look at the host brought.
type seen struct {
	snap   *model.Snapshot
	blocks []*blocks.Process // from a ttmond that watches through the kernel
	events []eventlog.Event
	asked  bool // events were asked for
	// compared: blocks were, too.
	compared bool
	err      error
}

// line is one that the program printed.
type line struct {
	at time.Time
	recording.Output
}

// newSession makes the file and begins to look at the host.
func (a *app) newSession(o sessionOptions) (*session, error) {
	now := time.Now()
	if o.file == "" {
		o.file = now.Format("ttmon-2006-01-02-150405") + recordingSuffix
	}
	h, err := a.openHost()
	if err != nil {
		return nil, err
	}
	w, err := recording.Create(o.file, o.replace)
	if errors.Is(err, fs.ErrExist) {
		return nil, usage("%s is there already: choose another name, or --replace it", o.file)
	}
	if err != nil {
		return nil, fileError(err)
	}
	s := &session{app: a, o: o, w: w, r: recorder.New(w.Encoder, now), seen: make(chan seen, 4), done: make(chan struct{}), lines: make(chan line, 1024)}
	name, _ := os.Hostname()
	s.meta = recording.Meta{Version: version.Version, Host: name, Started: now, Interval: o.interval, Command: o.command}
	s.r.Meta(now, s.meta)
	s.stream.in = make(chan streamed, 64)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.look(ctx, h)
	return s, nil
}

const recordingSuffix = ".ttrec"

// follow records what the processes of a reader tell. With sweeps, the reader
// is ours; otherwise its sweeps are handed to us.
func (s *session) follow(r *track.Reader, sweeps bool) { s.reader, s.sweeps = r, sweeps }

// look takes snapshots. It has a goroutine of its own: a chip may not answer.
func (s *session) look(ctx context.Context, h *host) {
	defer close(s.done)
	defer h.Close()
	var last time.Time
	var daemon daemonView
	defer daemon.close()
	ticker := time.NewTicker(s.o.interval)
	defer ticker.Stop()
	for {
		snap, err := h.Next(ctx)
		x := seen{snap: snap, err: err}
		if err == nil && !snap.Time.Equal(last) {
			last = snap.Time
			if snap.Source == model.Daemon {
				daemon.ask(ctx, h, &x, s)
			}
		} else if err == nil {
			x.snap = nil // the daemon has made no new one
		}
		if x.snap != nil || x.err != nil {
			select {
			case s.seen <- x:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// daemonView is what only a ttmond knows.
type daemonView struct {
	client *client.Client
	after  uint64
	since  time.Time
	next   time.Time
}

func (d *daemonView) close() {
	if d.client != nil {
		d.client.Close()
	}
}

// ask asks what happened, and what processes hold that it watches through the
// kernel; not more often than it looks itself.
func (d *daemonView) ask(ctx context.Context, h *host, x *seen, s *session) {
	if now := time.Now(); now.Before(d.next) {
		return
	} else {
		d.next = now.Add(time.Second)
	}
	if d.client == nil {
		path := h.socket()
		if path == "" {
			return
		}
		d.client, d.since = client.New(path), x.snap.Time
		go followStream(ctx, path, s.stream.in)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// Where it keeps none, or is busy, what the snapshots tell remains.
	if list, err := d.client.Events(ctx, eventlog.Query{After: d.after, Since: d.since}); err == nil {
		for i := range list {
			d.after = list[i].Seq
		}
		x.events, x.asked = list, true
	}
	if x.compared = s.comparing.Load(); !x.compared {
		return
	}
	for i := range x.snap.Processes {
		p := &x.snap.Processes[i]
		if !throughKernel(p) {
			continue
		}
		if b, err := d.client.Blocks(ctx, p.PID); err == nil {
			x.blocks = append(x.blocks, b)
		}
	}
}

func throughKernel(p *model.Process) bool {
	for i := range p.Devices {
		if p.Devices[i].Source == model.FromUprobe {
			return true
		}
	}
	return false
}

// tick takes in what came, and writes what is old enough.
func (s *session) tick(now time.Time) error {
	s.take()
	s.comparing.Store(s.stream.why != nil && !s.streams(now))
	if s.reader != nil {
		if s.sweeps && now.Sub(s.swept) >= sweepEvery {
			s.swept = now
			s.sweep(s.reader.Read(nil))
		} else {
			s.told(s.reader.Events(), now)
		}
	}
	if err := s.r.Flush(s.settled(now)); err != nil {
		return err
	}
	return s.w.Tick(now, blockAge)
}

// sweep takes in what a reader found.
func (s *session) sweep(found *track.Sweep) {
	now := time.Now()
	told := s.reader.Events()
	s.count(told)
	s.r.Sweep(found, told, now)
}

func (s *session) told(list []track.Told, now time.Time) {
	s.count(list)
	s.r.Told(list, now)
}

func (s *session) count(list []track.Told) {
	for i := range list {
		s.allocations += len(list[i].Events)
	}
}

// take takes in what came of snapshots and lines.
func (s *session) take() {
	for {
		select {
		case x := <-s.seen:
			s.looked = true
			if s.last = x.err; x.snap == nil {
				continue
			}
			s.snapshots++
			s.r.Snapshot(x.snap, x.asked)
			for _, e := range x.events {
				s.r.Event(e)
			}
			if x.compared && !s.streams(time.Now()) {
				if len(x.blocks) > 0 {
					s.compared(x.snap.Time)
				}
				s.r.Blocks(x.blocks, x.snap.Time)
			}
		case x := <-s.stream.in:
			s.takeStream(x, time.Now())
		case l := <-s.lines:
			s.r.Output(l.at, l.Output)
		default:
			return
		}
	}
}

// capture passes on what a program prints, and notes its lines. What it
// returns is to be given to the program and closed when that has been started;
// the channel is closed when all is passed on.
func (s *session) capture(stream int, to io.Writer) (w *os.File, passed chan struct{}, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("recording the output: %w", err)
	}
	passed = make(chan struct{})
	go func() {
		defer close(passed)
		defer r.Close()
		in := bufio.NewReaderSize(io.TeeReader(r, to), 64<<10)
		for {
			text, err := in.ReadSlice('\n')
			if n := len(text); n > 0 {
				if text[n-1] == '\n' {
					n--
				}
				// A program is not kept waiting for its recorder.
				select {
				case s.lines <- line{time.Now(), recording.Output{Stream: stream, Text: string(text[:n])}}:
				default:
				}
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
		}
	}()
	return w, passed, nil
}

// end writes the rest. err is why, where that was not in good order.
func (s *session) end(err error, say bool) error {
	s.awaitStream()
	s.stop()
	select { // a chip that does not answer is not waited for
	case <-s.done:
	case <-time.After(time.Second):
	}
	s.take()
	s.r.Meta(time.Now(), s.meta)
	err = errors.Join(err, s.r.Flush(time.Now().Add(time.Hour)), s.w.Close())
	if err != nil {
		return fileError(err)
	}
	if say {
		path := s.o.file
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		fmt.Fprintf(s.stderr, "ttmon: %s\n", words.Escape(fmt.Sprintf("recorded %v in %s (%s, %s, %d allocations and frees): ttmon replay %s",
			time.Since(s.meta.Started).Round(100*time.Millisecond), path, words.Bytes(uint64(s.w.Bytes())), words.Count(s.snapshots, "snapshot"), s.allocations, s.o.file)))
		if n := s.r.Missed; n > 0 {
			fmt.Fprintf(s.stderr, "ttmon: %d allocations and frees were missed: the recorder was too slow for them; what programs held is right again after each gap\n", n)
		}
		if s.snapshots == 0 && s.last != nil {
			fmt.Fprintf(s.stderr, "ttmon: %s\n", words.Escape("no snapshot could be taken: "+s.last.Error()))
		}
	}
	return nil
}
