// Package kmsg reads what the driver and the chips' firmware write into the
// kernel's log. No chip is asked: newer drivers pass the firmware's own log on
// (lines that begin with SMC: and DMC:).
//
// It knows /dev/kmsg and nothing else. What it keeps is bounded, however much is
// written there, by any user.
package kmsg

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// Bounds.
const (
	kept       = 32   // lines, the newest
	maxText    = 400  // bytes of one
	maxRecords = 4000 // per call: what is left is for the next one
	maxBuffer  = 64 << 10
	maxKills   = 64
)

// Reader follows the kernel's log. It is not safe for concurrent use.
type Reader struct {
	root    hostfs.Root
	fd      int // -1: not open
	tried   bool
	buffer  []byte // the begin of a record
	lines   []model.LogLine
	kills   []model.OOMKill
	skipped uint64 // records that the kernel dropped before they were read
	// since is when the log was last read to its end: what comes later was written
	// later. Zero: never.
	since time.Time
}

// New returns a reader of the log of the host below root. It opens nothing yet.
func New(root hostfs.Root) *Reader { return &Reader{root: root, fd: -1} }

// Close lets the log go.
func (r *Reader) Close() {
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
}

// Lines are the newest lines about driver and chips, the oldest first. Where the
// log cannot be read there are none.
func (r *Reader) Lines() []model.LogLine {
	r.update()
	return append([]model.LogLine(nil), r.lines...)
}

// OOMKills are the processes that the kernel killed last for want of memory, the
// oldest first; known is false where the log cannot be read.
func (r *Reader) OOMKills() (list []model.OOMKill, known bool) {
	known = r.update()
	return append([]model.OOMKill(nil), r.kills...), known
}

// update reads what is new, and reports whether the log can be read.
func (r *Reader) update() bool {
	if r.fd < 0 && !r.tried {
		r.tried = true
		fd, err := unix.Open(r.root.Path("/dev/kmsg"), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		r.fd = fd
	}
	if r.fd < 0 {
		return false
	}
	r.read()
	return true
}

func (r *Reader) read() {
	boot := bootTime()
	var chunk [8192]byte
	for range maxRecords {
		n, err := unix.Read(r.fd, chunk[:])
		switch {
		case errors.Is(err, unix.EPIPE): // records were overwritten before we came
			r.skipped++
			continue
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0:
			r.take(boot, true)
			r.since = time.Now()
			return
		}
		if len(r.buffer)+n > maxBuffer {
			r.buffer = r.buffer[:0] // no record is that long
		}
		r.buffer = append(r.buffer, chunk[:n]...)
		r.take(boot, false)
	}
}

// take takes the records out of the buffer that are whole: the next one has
// begun, or there is no more to read. A read of the kernel's file gives one
// record; other files give what fits.
func (r *Reader) take(boot time.Time, atEnd bool) {
	for {
		end := recordEnd(r.buffer)
		if end < 0 {
			if !atEnd || len(r.buffer) == 0 || r.buffer[len(r.buffer)-1] != '\n' {
				return
			}
			end = len(r.buffer)
		}
		if l, ok := Parse(r.buffer[:end], boot); ok {
			l.Time = r.bounded(l.Time)
			r.keep(l)
		} else if k, ok := ParseOOMKill(r.buffer[:end], boot); ok {
			k.Time = r.bounded(k.Time)
			r.kills = append(r.kills[max(0, len(r.kills)-maxKills+1):], k)
		}
		r.buffer = r.buffer[:copy(r.buffer, r.buffer[end:])]
	}
}

// bounded is a stamp of the log, where it can be right. The clock that it counts by
// is that of a processor, and nothing corrects it: after months it is off by seconds.
func (r *Reader) bounded(stamp time.Time) time.Time {
	if r.since.IsZero() {
		return stamp
	}
	if stamp.Before(r.since) {
		return r.since
	}
	if now := time.Now(); stamp.After(now) {
		return now
	}
	return stamp
}

// recordEnd is where the record after the first one begins; -1: nowhere yet.
func recordEnd(b []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 || at+i+1 >= len(b) {
			return -1
		}
		if at += i + 1; b[at] != ' ' {
			return at
		}
	}
}

func (r *Reader) keep(l model.LogLine) {
	if n := len(r.lines); n > 0 && l.Sequence <= r.lines[n-1].Sequence {
		return
	}
	if len(r.lines) == kept {
		r.lines = append(r.lines[:0], r.lines[1:]...)
	}
	r.lines = append(r.lines, l)
}

// bootTime is what the stamps of the log count from.
func bootTime() time.Time {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(ts.Nano()))
}

// record is one of the kernel's own.
type record struct {
	sequence   uint64
	time       time.Time
	level      int
	text, keys []byte
}

// split reads "level,sequence,microseconds,flags;text", then lines that begin with a
// blank and say what the record is about. ok is false for a record that the kernel
// did not write itself: who may write to the file can claim anything.
func split(b []byte, boot time.Time) (r record, ok bool) {
	head, rest, found := bytes.Cut(b, []byte(";"))
	fields := strings.Split(string(head[:min(len(head), 200)]), ",")
	if !found || len(fields) < 4 {
		return r, false
	}
	priority, err1 := strconv.ParseUint(fields[0], 10, 32)
	sequence, err2 := strconv.ParseUint(fields[1], 10, 64)
	micro, err3 := strconv.ParseUint(fields[2], 10, 62)
	if err1 != nil || err2 != nil || err3 != nil || priority>>3 != 0 || micro > 1<<52 {
		return r, false
	}
	r = record{sequence: sequence, time: boot.Add(time.Duration(micro) * time.Microsecond), level: int(priority & 7)}
	r.text, r.keys, _ = bytes.Cut(rest, []byte("\n"))
	return r, true
}

// ParseOOMKill reads a record about a process that the kernel killed for want of
// memory, of the host or of a control group. No name that a user chose stands before
// the words that it is found by.
func ParseOOMKill(b []byte, boot time.Time) (k model.OOMKill, ok bool) {
	r, ok := split(b, boot)
	if !ok {
		return k, false
	}
	rest, host := bytes.CutPrefix(r.text, []byte("Out of memory: "))
	if !host {
		if rest, ok = bytes.CutPrefix(r.text, []byte("Memory cgroup out of memory: ")); !ok {
			return k, false
		}
	}
	rest, killed := bytes.CutPrefix(rest, []byte("Killed process "))
	digits, _, named := bytes.Cut(rest, []byte(" ("))
	if !killed || !named || len(digits) > 10 {
		return k, false
	}
	pid, err := strconv.ParseUint(string(digits), 10, 31)
	return model.OOMKill{PID: int(pid), Time: r.time}, err == nil && pid > 0
}

// Parse reads a record about driver or chips.
func Parse(b []byte, boot time.Time) (l model.LogLine, ok bool) {
	r, ok := split(b, boot)
	if !ok {
		return l, false
	}
	text, keys := r.text, r.keys
	l = model.LogLine{Sequence: r.sequence, Time: r.time, Level: r.level, From: model.LogDriver}
	message := unescape(string(text[:min(len(text), 4*maxText)]))
	if l.BusID, message, ok = subject(message, string(keys[:min(len(keys), 1000)])); !ok {
		return l, false
	}
	message = withoutColours(message)
	for prefix, from := range map[string]model.LogSource{"SMC: ": model.LogSMC, "DMC: ": model.LogDMC} {
		if own, is := strings.CutPrefix(message, prefix); is && l.BusID != "" {
			l.From, message = from, own
		}
	}
	if len(message) > maxText {
		message = strings.ToValidUTF8(message[:maxText], "") + "…"
	}
	l.Text = message
	return l, true
}

// subject is which device a message is about, and what it says. The kernel begins
// lines with the name of the driver; but it begins lines about a crash with the
// name of the program, which users choose. So a line about a device must also
// have the kernel's own word for it, and one about the driver none of a program's
// pid.
func subject(message, keys string) (busID, text string, ok bool) {
	if rest, is := strings.CutPrefix(message, "tenstorrent: "); is {
		return "", rest, !aboutProgram(rest)
	}
	rest, is := strings.CutPrefix(message, "tenstorrent ")
	at, said, found := strings.Cut(rest, ": ")
	if !is || !found || len(at) > 16 {
		return "", "", false
	}
	for line := range strings.Lines(keys) {
		if strings.TrimSpace(line) == "DEVICE=+pci:"+at {
			return at, said, true
		}
	}
	return "", "", false
}

// aboutProgram reports whether a line looks like one about a program:
// "name[123]: segfault at …".
func aboutProgram(text string) bool {
	name, rest, found := strings.Cut(text, "[")
	digits, after, closed := strings.Cut(rest, "]")
	return found && closed && len(name) <= 16 && digits != "" && strings.Trim(digits, "0123456789") == "" && (strings.HasPrefix(after, ":") || strings.HasPrefix(after, " "))
}

// withoutColours drops a terminal's control sequences, ESC [ … letter, which the
// firmware writes and not every driver strips.
func withoutColours(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		s = strings.TrimLeft(rest, "0123456789;:?")
		if s != "" && s[0] >= '@' && s[0] <= '~' {
			s = s[1:]
		}
	}
}

// unescape undoes the kernel's \x1b for what is not printable.
func unescape(s string) string {
	if !strings.Contains(s, `\x`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x' {
			if n, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}
