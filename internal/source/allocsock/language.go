package allocsock

import (
	"path"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs/proc"
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
// that takes: only its own connections wait for it.
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
// Unknown: its process is to be inspected; see awaitLanguage.
func (s *Server) readingOf(c *conn, counting bool) reading {
	p := s.writerOf(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.language == unknownLanguage {
		return readingUnknown
	}
	return p.language.reading(counting)
}

// awaitLanguage returns when it is known what the process runs whose messages are being
// decoded, or when Run is to return.
func (s *Server) awaitLanguage(c *conn) {
	p := s.writerOf(c)
	s.mu.Lock()
	stopped := s.closing
	if p.language == unknownLanguage && p.inspected == nil {
		s.inspect(p)
	}
	inspected := p.inspected
	s.mu.Unlock()
	if inspected == nil || stopped == nil {
		return
	}
	select {
	case <-inspected:
		return
	case <-time.After(2 * inspectTime): // the kernel does not answer; the goroutine may wait for ever
	case <-stopped:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.language == unknownLanguage {
		p.language = metalPython // as if it might not be read
	}
}

// inspect finds out what a process runs. With mu.
func (s *Server) inspect(p *reporter) {
	if p.ended || !s.pools.inspections.Acquire(p.uid, 1) {
		p.language = metalPython
		return
	}
	found := make(chan struct{})
	p.inspected = found
	go func() {
		defer close(found)
		defer s.pools.inspections.Release(p.uid, 1)
		result := s.languageOf(p.key.PID, p.name)
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.language == unknownLanguage {
			p.language = result
		}
	}()
}
