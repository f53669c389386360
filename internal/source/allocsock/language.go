package allocsock

import (
	"path"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/proc"
)

// language is the kind of program a process runs, as far as it matters for
// buffer types.
type language uint8

const (
	unknownLanguage language = iota
	notPython                // or unknown
	plainPython              // without tt-metal
	metalPython              // with tt-metal, or it may not be read
)

// reading returns which list of buffer types a client in such a process uses;
// see the package comment. counting: it numbers its buffers.
func (l language) reading(counting bool) reading {
	if l == plainPython || l == metalPython && counting {
		return readingPython
	}
	return readingMetal
}

// inspectTime bounds the inspection of one process, which controls how long
// that takes: so it is done outside the loop.
const inspectTime = 500 * time.Millisecond

// languageOf inspects what a process runs and has loaded.
func languageOf(pid int, name string) language {
	exe, err := proc.Executable(ownHost, pid)
	if err != nil {
		exe = name // another user's; the name is public
	}
	base := path.Base(exe)
	if !strings.HasPrefix(base, "python") && !strings.HasPrefix(base, "pypy") {
		return notPython
	}
	metal, err := proc.MapsMention(ownHost, pid, time.Now().Add(inspectTime), "libtt_metal", "_ttnn")
	if metal || err != nil {
		return metalPython
	}
	return plainPython
}

// readingOf returns which list the buffer types of a connection are from.
// Unknown: its process is being inspected; the connection waits for it.
func (s *Server) readingOf(c *conn, counting bool) reading {
	p := s.writerOf(c)
	if p.language == unknownLanguage && !s.startInspection(p) {
		p.waiting = append(p.waiting, c)
		return readingUnknown
	}
	return p.language.reading(counting)
}

// startInspection finds out what a process runs; false: the inspection has
// started.
func (s *Server) startInspection(p *reporter) bool {
	switch {
	case len(p.waiting) > 0:
		return false
	case p.ended, s.stopping.Load(), !s.pools.inspections.Acquire(p.uid, 1):
		p.language = metalPython // as if it might not be read
		return true
	}
	pid, name, uid := p.key.PID, p.name, p.uid
	found := make(chan language, 1)
	s.helpers.Go(func() {
		timer := time.NewTimer(2 * inspectTime)
		defer timer.Stop()
		result := metalPython
		select {
		case result = <-found:
		case <-timer.C: // the kernel does not answer; the goroutine may wait for ever
		case <-s.closing:
		}
		s.post(func() { s.finishInspection(p, result) })
	})
	go func() {
		found <- s.languageOf(pid, name)
		s.pools.inspections.Release(uid, 1)
	}()
	return false
}

// finishInspection resumes the connections that have waited.
func (s *Server) finishInspection(p *reporter, l language) {
	p.language = l
	waiting := p.waiting
	p.waiting = nil
	for _, c := range waiting {
		s.unpark(c)
	}
}
