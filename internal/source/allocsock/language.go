package allocsock

import (
	"path"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/proc"
)

// language is what a process runs, as far as it matters for buffer types.
type language uint8

const (
	unknownLanguage language = iota
	notPython                // or not to be told
	plainPython              // without tt-metal
	metalPython              // with tt-metal, or it may not be looked at
)

// reading says which list of buffer types a client in such a process means;
// see the package comment. counting: it numbers its buffers.
func (l language) reading(counting bool) reading {
	if l == plainPython || l == metalPython && counting {
		return readingPython
	}
	return readingMetal
}

// lookTime is how long looking at one process may take: it decides that
// itself, so it is done beside the loop.
const lookTime = 500 * time.Millisecond

// languageOf looks at what a process runs and has loaded.
func languageOf(pid int, name string) language {
	exe, err := proc.Executable(ownHost, pid)
	if err != nil {
		exe = name // another user's; the name is for everybody
	}
	base := path.Base(exe)
	if !strings.HasPrefix(base, "python") && !strings.HasPrefix(base, "pypy") {
		return notPython
	}
	metal, err := proc.MapsMention(ownHost, pid, time.Now().Add(lookTime), "libtt_metal", "_ttnn")
	if metal || err != nil {
		return metalPython
	}
	return plainPython
}

// readingOf says how the buffer types of a connection are meant. Unknown: its
// process is being looked at; the connection waits for it.
func (s *Server) readingOf(c *conn, counting bool) reading {
	p := s.writerOf(c)
	if p.language == unknownLanguage && !s.look(p) {
		p.waiting = append(p.waiting, c)
		return readingUnknown
	}
	return p.language.reading(counting)
}

// look finds out what a process runs; false: it has begun to.
func (s *Server) look(p *reporter) bool {
	switch {
	case len(p.waiting) > 0:
		return false
	case p.ended, s.stopping.Load(), !s.pools.looks.Take(p.uid, 1):
		p.language = metalPython // as if it might not be looked at
		return true
	}
	pid, name, uid := p.key.PID, p.name, p.uid
	found := make(chan language, 1)
	s.helpers.Go(func() {
		timer := time.NewTimer(2 * lookTime)
		defer timer.Stop()
		result := metalPython
		select {
		case result = <-found:
		case <-timer.C: // the kernel does not answer; who asked it may wait for ever
		case <-s.closing:
		}
		s.post(func() { s.looked(p, result) })
	})
	go func() {
		found <- s.languageOf(pid, name)
		s.pools.looks.Give(uid, 1)
	}()
	return false
}

// looked goes on with the connections that have waited.
func (s *Server) looked(p *reporter, l language) {
	p.language = l
	waiting := p.waiting
	p.waiting = nil
	for _, c := range waiting {
		s.unpark(c)
	}
}
