// Package session records a host while it runs: it takes snapshots, follows what
// processes report and what ttmond sees through the kernel, and has
// internal/past/recorder write it in order. ttmon record and ttmon run --record use it.
package session

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

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/launches"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/past/recorder"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/source/track"
)

// DrainEvery is how often Tick is to be called: then what processes report is
// read, and their ring holds seconds of it.
const DrainEvery = 50 * time.Millisecond

// Times of a recording.
const (
	sweepEvery = 250 * time.Millisecond // who tells is looked for
	blockAge   = time.Second            // what is not in the file yet when a recorder is killed
	settle     = 2 * time.Millisecond   // between a time that a process takes and its event
)

// Options are what is recorded, and where.
type Options struct {
	File     string // empty: named after the time, in this folder
	Replace  bool   // a file that is there
	Interval time.Duration
	Output   bool // record the lines that the command prints
	// Programs has every program that runs on a chip recorded, where a ttmond
	// sends them.
	Programs bool
	Command  []string
	Host     host.Options
}

// Session is a recording that is being made.
type Session struct {
	o      Options
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
	// programs are those that ran on chips.
	programs programStream
	// comparing tells the one who looks that blocks are to be asked for.
	comparing atomic.Bool

	looked                 bool            // at the host, with whatever success
	latest                 *model.Snapshot // nil: there is none yet
	ledgers                ledgerFailures
	snapshots, allocations int
	last                   error // why there was no snapshot
}

// seen is what one look at the host brought.
type seen struct {
	snap   *model.Snapshot
	blocks []*blocks.Process // from a ttmond that watches through the kernel
	events []model.Event
	asked  bool // events were asked for
	// failures are requests for memory that failed since the look before.
	failures []*failure.Record
	// compared: blocks were, too.
	compared bool
	err      error
}

// line is one that the program printed.
type line struct {
	at time.Time
	recording.Output
}

// New makes the file and begins to look at the host.
func New(o Options) (*Session, error) {
	now := time.Now()
	if o.File == "" {
		o.File = now.Format("ttmon-2006-01-02-150405") + Suffix
	}
	h, err := host.Open(o.Host)
	if err != nil {
		return nil, err
	}
	w, err := recording.Create(o.File, o.Replace)
	if errors.Is(err, fs.ErrExist) {
		return nil, exit.Usage("%s already exists: choose another name, or use --replace", o.File)
	}
	if err != nil {
		return nil, console.FileError(err)
	}
	s := &Session{o: o, w: w, r: recorder.New(w.Encoder, now), seen: make(chan seen, 4), done: make(chan struct{}), lines: make(chan line, 1024)}
	name, _ := os.Hostname()
	s.meta = recording.Meta{Version: version.Version, Host: name, Started: now, Interval: o.Interval, Command: o.Command}
	s.r.Meta(now, s.meta)
	s.stream.in, s.stream.most = make(chan received[changes.Batch], 64), h.Timeout
	if o.Programs {
		s.programs.in = make(chan received[launches.Message], 64)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.poll(ctx, h)
	return s, nil
}

// Suffix is how the names of recordings end.
const Suffix = ".ttrec"

// Follow records what the processes of a reader tell. With sweeps, the reader
// is ours; otherwise its sweeps are handed to us.
func (s *Session) Follow(r *track.Reader, sweeps bool) { s.reader, s.sweeps = r, sweeps }

// poll takes snapshots. It has a goroutine of its own: a chip may not answer.
func (s *Session) poll(ctx context.Context, h *host.Host) {
	defer close(s.done)
	defer h.Close()
	var last time.Time
	var daemon daemonView
	defer daemon.close()
	ticker := time.NewTicker(s.o.Interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		snap, err := next(ctx, h, first)
		x := seen{snap: snap, err: err}
		if err == nil && !snap.Time.Equal(last) {
			last = snap.Time
			if snap.Source == model.Daemon {
				daemon.fetch(ctx, h, &x, s)
			}
		} else if err == nil {
			x.snap = nil // the daemon has made no new one
		}
		if x.snap != nil || x.err != nil {
			select {
			case s.seen <- x: // there is room, unless the reader has stopped
			default:
				select {
				case s.seen <- x:
				case <-ctx.Done():
					return
				}
			}
		}
		select {
		case <-ctx.Done():
			s.pollLast(&daemon)
			return
		case <-ticker.C:
		}
	}
}

// pollLast asks for what failed up to the end, and how often.
func (s *Session) pollLast(d *daemonView) {
	if d.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endAfter/2)
	defer cancel()
	if list := d.failed.since(ctx, d.client, d.since, true); len(list) > 0 {
		select {
		case s.seen <- seen{failures: list}:
		default:
		}
	}
}

// next is the host's next snapshot. The first is waited for even where the
// program has ended meanwhile: a recording without one cannot be shown.
func next(ctx context.Context, h *host.Host, first bool) (*model.Snapshot, error) {
	if first {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), endAfter)
		defer cancel()
	}
	return h.Next(ctx)
}

// endAfter is how long the end of a recording waits for a snapshot.
const endAfter = time.Second

// daemonView is what only ttmond and ttmon-server know.
type daemonView struct {
	client *client.Client
	server *client.Client
	after  uint64
	since  time.Time
	next   time.Time
	failed failed
}

func (d *daemonView) close() {
	if d.server != nil {
		d.server.Close()
	}
	if d.client != nil {
		d.client.Close()
	}
}

// fetch gets the events, and what processes hold that ttmond watches through the
// kernel; not more often than it looks itself.
func (d *daemonView) fetch(ctx context.Context, h *host.Host, x *seen, s *Session) {
	if now := time.Now(); now.Before(d.next) {
		return
	} else {
		d.next = now.Add(time.Second)
	}
	if d.client == nil {
		path := h.Socket()
		if path == "" {
			return
		}
		d.client, d.since = client.New(path), x.snap.Time
		go follow(ctx, func(ctx context.Context) (*client.Changes, error) { return client.FollowChanges(ctx, path) }, s.stream.in)
		if s.programs.in != nil {
			go follow(ctx, func(ctx context.Context) (*client.Programs, error) { return client.FollowPrograms(ctx, path) }, s.programs.in)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if d.server == nil || d.server.Path() != h.Server() {
		d.server = client.New(h.Server())
	}
	// Where none are kept, or ttmon-server is busy, what the snapshots tell remains.
	if list, err := d.server.Events(ctx, eventlog.Query{After: d.after, Since: d.since}); err == nil {
		for i := range list {
			d.after = list[i].Seq
		}
		x.events, x.asked = list, true
	}
	x.failures = d.failed.since(ctx, d.client, d.since, false)
	if x.compared = s.comparing.Load(); !x.compared {
		return
	}
	for i := range x.snap.Processes {
		p := &x.snap.Processes[i]
		if !throughKernel(p) {
			continue
		}
		if b, _, err := d.client.Blocks(ctx, p.PID); err == nil {
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

// Tick takes in what came, and writes what is old enough.
func (s *Session) Tick(now time.Time) error {
	s.stream.wait(now)
	s.drain()
	s.comparing.Store(s.stream.why != nil && !s.streams(now))
	if s.reader != nil {
		if s.sweeps && now.Sub(s.swept) >= sweepEvery {
			s.swept = now
			s.Sweep(s.reader.Read(nil))
		} else {
			s.addEvents(s.reader.Events(), now)
		}
	}
	if err := s.r.Flush(s.stream.settled(now)); err != nil {
		return err
	}
	return s.w.Tick(now, blockAge)
}

// Sweep takes in what a reader found.
func (s *Session) Sweep(found *track.Sweep) {
	now := time.Now()
	told := s.reader.Events()
	s.count(told)
	s.r.Sweep(found, told, now)
	s.failures(s.ledgers.new(found), now)
}

func (s *Session) addEvents(list []track.LedgerEvents, now time.Time) {
	s.count(list)
	s.r.AddEvents(list, now)
}

func (s *Session) count(list []track.LedgerEvents) {
	for i := range list {
		s.allocations += len(list[i].Events)
	}
}

// drain records the snapshots and lines that have arrived.
func (s *Session) drain() {
	for {
		select {
		case x := <-s.seen:
			s.addSeen(&x)
		case x := <-s.stream.in:
			s.addChanges(x, time.Now())
		case x := <-s.programs.in:
			s.addProgram(x, time.Now())
		case l := <-s.lines:
			s.r.Output(l.at, l.Output)
		default:
			return
		}
	}
}

// addSeen takes in what one look at the host brought.
func (s *Session) addSeen(x *seen) {
	for _, f := range x.failures {
		s.r.Failure(f, time.Now())
	}
	if x.snap == nil && x.err == nil {
		return
	}
	s.looked = true
	if s.last = x.err; x.snap == nil {
		return
	}
	s.latest = x.snap
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
}

// Capture passes on what a program prints, and notes its lines. What it
// returns is to be given to the program and closed when that has been started;
// the channel is closed when all is passed on.
func (s *Session) Capture(stream int, to io.Writer) (w *os.File, passed chan struct{}, err error) {
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

// Started notes the process of the command that is recorded.
func (s *Session) Started(pid int) {
	s.meta.PID = pid
	s.r.Meta(time.Now(), s.meta)
}

// Exited notes how the command ended.
func (s *Session) Exited(code int) { s.meta.ExitCode = &code }

// End writes the rest. err is why the recording ends, where that is a failure.
func (s *Session) End(err error) error {
	s.awaitStream()
	s.awaitPrograms()
	s.stop()
	select { // a chip that does not answer is not waited for
	case <-s.done:
	case <-time.After(endAfter):
	}
	s.drain()
	s.failures(s.ledgers.rest(), time.Now())
	s.r.Meta(time.Now(), s.meta)
	err = errors.Join(err, s.r.Flush(time.Now().Add(time.Hour)), s.w.Close())
	if err != nil {
		return console.FileError(err)
	}
	return nil
}

// AppendSummary prints what was recorded, and what was not.
func (s *Session) AppendSummary(dst []byte) []byte {
	path := s.o.File
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	dst = fmt.Appendf(dst, "ttmon: %s\n", words.Escape(fmt.Sprintf("recorded %v in %s (%s, %s, %d allocations and frees): ttmon replay %s",
		time.Since(s.meta.Started).Round(100*time.Millisecond), path, words.Bytes(uint64(s.w.Bytes())), words.Count(s.snapshots, "snapshot"), s.allocations, s.o.File)))
	if n := s.r.Missed; n > 0 {
		dst = fmt.Appendf(dst, "ttmon: %d allocations and frees were missed: the recorder was too slow for them; what programs held is right again after each gap\n", n)
	}
	dst = s.appendPrograms(dst)
	if s.snapshots == 0 && s.last != nil {
		dst = fmt.Appendf(dst, "ttmon: %s\n", words.Escape("no snapshot could be taken: "+s.last.Error()))
	}
	return dst
}
