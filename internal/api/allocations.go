package api

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/blocks/changes"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/unixhttp"
)

// Changes tells what happens to the blocks of processes.
type Changes interface {
	// Next waits for something to tell.
	Next(context.Context) (changes.Batch, error)
	Close()
}

// allocations tells every allocation and free as it happens, line by line, of
// the processes that the caller may see the blocks of. One that reads slowly is
// told what holds and how much it missed; one that does not read at all is
// dropped.
func (s *Server) allocations(w unixhttp.Writer, r *unixhttp.Request) {
	only, err := parsePIDs(r.URL.Query()["pid"])
	switch {
	case err != nil:
		fail(w, unixhttp.StatusBadRequest, "pid: %q is not a pid", err.Error())
		return
	case s.opt.Changes == nil:
		fail(w, unixhttp.StatusNotFound, "allocators are not watched by this ttmond; /v1/health says why")
		return
	case !callerOf(r).exists:
		fail(w, unixhttp.StatusForbidden, "allocations are for the users of their processes and for root: ask over the socket, or with a session")
		return
	}
	leave, ok := s.watchesOf(s.budgets.followers, w, r)
	if !ok {
		return
	}
	defer leave()
	who := callerOf(r)
	follower := s.opt.Changes(func(pid, uid int) bool {
		return (len(only) == 0 || slices.Contains(only, pid)) && who.owns(uid) && !s.viewpoint(r).hides(model.Value(uid))
	})
	defer follower.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(unixhttp.StatusOK)
	if w.Flush() != nil {
		return
	}
	var text []byte
	for {
		b, err := follower.Next(r.Context())
		if err != nil {
			return // the client has left, or nothing is watched any more
		}
		if text, err = changes.Append(text[:0], &b); err != nil {
			s.log.Error("cannot encode allocation events", "err", err)
			return
		}
		_ = w.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := w.Write(text); err != nil || w.Flush() != nil {
			return
		}
		if cap(text) > maxKeptText {
			text = nil // a process with many blocks was told
		}
	}
}

// maxKeptText is how much memory a follower keeps for the next lines.
const maxKeptText = 1 << 20

// badPID is a text that is no pid.
type badPID string

func (e badPID) Error() string { return string(e) }

func parsePIDs(texts []string) (list []int, err error) {
	for _, text := range texts {
		pid, err := strconv.Atoi(text)
		if err != nil || pid < 1 {
			return nil, badPID(text)
		}
		list = append(list, pid)
	}
	return list, nil
}
