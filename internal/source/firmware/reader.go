package firmware

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/chipread"
)

// Reader is a process that reads chips, one after the other.
type Reader interface {
	PID() int
	// Next waits for the next chip's answer until a time. The stages are those
	// that the reader has reported since the answer before.
	Next(until time.Time) (stages string, answer chipread.Response, err error)
	// Kill ends it, as far as a load that does not return lets it be ended.
	Kill()
	// Wait waits until it has ended, however long that takes.
	Wait()
}

// errLate is the error of a reader that has not answered in time.
var errLate = errors.New("no answer in time")

// job is a chip that is to be read, and what is asked of it.
type job struct {
	chip    *chip
	request chipread.Request
}

// start starts a reader of some chips. The source's lock is held.
func (s *Source) start(jobs []job, now time.Time) {
	requests := make([]chipread.Request, len(jobs))
	for i := range jobs {
		requests[i] = jobs[i].request
		jobs[i].chip.due = now.Add(s.opts.Every)
	}
	reader, err := s.opts.Start(requests)
	if err != nil {
		s.opts.Log.Warn("cannot start chip reader", "bus_id", requests[0].BusID, "chips", len(jobs), "err", err)
		for _, j := range jobs {
			j.chip.set(model.TelemetryFailed, model.ReaderFailed, now)
		}
		return
	}
	for _, j := range jobs {
		j.chip.reader, j.chip.wasReset = reader, false
	}
	s.own[reader.PID()] = reader
	s.running++
	s.started++
	s.wait.Add(1)
	go s.follow(jobs, reader)
}

// request is what to ask of a chip.
func (s *Source) request(c *chip, f *facts, way model.TelemetryWay) chipread.Request {
	d := f.Device
	at := func(name string) string { return s.opts.Root.Path(name) }
	node := at(path.Join("/dev/tenstorrent", fmt.Sprint(d.Index)))
	r := chipread.Request{Arch: d.Arch, Way: way, BusID: d.BusID, Known: c.known, First: c.words == nil, Path: node}
	if way == model.ByResource {
		r.Path = at("/sys/bus/pci/devices/" + d.BusID + "/resource4")
	}
	if d.Heartbeat.Known() {
		r.Heartbeat = at(fmt.Sprintf("/sys/class/tenstorrent/tenstorrent!%d/tt_heartbeat", d.Index))
	}
	if c.tiles(f) {
		r.Dispatch = true
		for i := range d.Telemetry.Ports {
			if p := &d.Telemetry.Ports[i]; p.Alive.V {
				r.Ethernet = append(r.Ethernet, p.Channel)
			}
		}
		if way == model.ByResource {
			r.Node = node
		}
	}
	return r
}

// follow waits for a reader's answers, and then for its end. The chips behind one
// that does not answer are read by another process.
func (s *Source) follow(jobs []job, reader Reader) {
	var stuck *chip
	late := false
	for i := range jobs {
		stages, answer, err := reader.Next(time.Now().Add(s.opts.Deadline))
		s.mu.Lock()
		s.applyAnswer(&jobs[i], stages, &answer, err)
		if err == nil {
			jobs[i].chip.reader = nil
			s.mu.Unlock()
			continue
		}
		stuck, late = jobs[i].chip, errors.Is(err, errLate)
		for _, j := range jobs[i+1:] {
			j.chip.reader, j.chip.due = nil, time.Time{}
		}
		s.mu.Unlock()
		break
	}
	if late {
		reader.Kill() // before Close returns: the program may end then
	}
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	s.wait.Done()
	reader.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own[reader.PID()] == reader { // else the kernel has given the number to the next one
		delete(s.own, reader.PID())
	}
	if late {
		s.killed[reader.PID()] = true
	}
	if stuck == nil {
		return
	}
	stuck.reader = nil
	if stuck.state == model.TelemetryStalled && stuck.wasReset {
		stuck.set(model.TelemetryPending, "", s.opts.Now())
	}
}

// applyAnswer updates a chip with the answer of its reader, or with why there is
// none. The source's lock is held.
func (s *Source) applyAnswer(j *job, stages string, answer *chipread.Response, err error) {
	c, r, now := j.chip, &j.request, s.opts.Now()
	late := errors.Is(err, errLate)
	switch {
	case err == nil && c.wasReset:
		c.set(model.TelemetryFailed, model.ResetWhileRead, now) // its words are of before
	case err == nil:
		c.apply(r, answer, now)
	case late && stages == string(chipread.StageHeartbeat):
		c.set(model.TelemetryFailed, model.ResetUnderWay, now) // the driver holds it up, not the chip
	case late && !strings.Contains(stages, string(chipread.StageChip)):
		c.set(model.TelemetryFailed, model.ReaderFailed, now) // it has not touched the chip: the host is busy
	case late:
		c.set(model.TelemetryStalled, model.ReadStalled, now)
		s.opts.Log.Error("chip read does not return; not reading this chip until it is reset", "bus_id", r.BusID, "via", r.Way)
	default:
		c.set(model.TelemetryFailed, model.ReaderFailed, now)
		s.opts.Log.Error("chip reader failed", "bus_id", r.BusID, "via", r.Way, "err", err)
	}
}

// maxAnswer bounds what a reader may answer for a chip.
const maxAnswer = 256 << 10

// process is this program, started again.
type process struct {
	cmd      *exec.Cmd
	out      *os.File
	lines    *bufio.Reader
	messages firstBytes
	ended    sync.Once
	err      error // how it ended
}

// firstBytes keeps the first bytes of what is written to it.
type firstBytes []byte

// maxMessages is enough for a panic and where it happened.
const maxMessages = 4 << 10

func (b *firstBytes) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), maxMessages-len(*b))]...)
	return len(p), nil
}

func startSelf(requests []chipread.Request) (Reader, error) {
	request, err := json.Marshal(requests)
	if err != nil {
		return nil, err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	in, feed, err := os.Pipe()
	if err != nil {
		out.Close()
		return nil, err
	}
	defer in.Close()
	defer feed.Close()
	p := &process{out: out, lines: bufio.NewReaderSize(out, maxAnswer), cmd: &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"ttmond", chipread.Flag}, Stdin: in, Stdout: w, Env: []string{"GOMAXPROCS=1"}, Dir: "/",
	}}
	// Not our own: a reader that no signal ends would keep it open after us, and
	// with it whatever reads our log through a pipe.
	p.cmd.Stderr = &p.messages
	if err := p.cmd.Start(); err != nil {
		out.Close()
		return nil, err
	}
	_ = feed.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := feed.Write(request); err != nil {
		p.Kill()
		go p.Wait()
		return nil, fmt.Errorf("sending the request: %w", err)
	}
	return p, nil
}

func (p *process) PID() int { return p.cmd.Process.Pid }
func (p *process) Kill()    { _ = p.cmd.Process.Kill() }

func (p *process) Wait() { _ = p.end() }

func (p *process) end() error {
	p.ended.Do(func() {
		p.err = p.cmd.Wait()
		p.out.Close()
		if text := bytes.TrimSpace(p.messages); p.err != nil && len(text) > 0 {
			p.err = fmt.Errorf("%w: %s", p.err, text)
		}
	})
	return p.err
}

func (p *process) Next(until time.Time) (stages string, answer chipread.Response, err error) {
	if err := p.out.SetReadDeadline(until); err != nil {
		return "", answer, err
	}
	text, err := p.lines.ReadSlice('\n')
	at := bytes.IndexByte(text, '{')
	if at < 0 {
		at = len(text)
	}
	stages = string(text[:at])
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return stages, answer, errLate
	case errors.Is(err, io.EOF):
		return stages, answer, fmt.Errorf("it ended without an answer: %w", cmp.Or(p.end(), errors.New("exit status 0")))
	case err != nil:
		return stages, answer, err
	}
	return stages, answer, json.Unmarshal(text[at:], &answer)
}
