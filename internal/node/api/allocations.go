package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/book/launches"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// Follower waits for what a client is sent about processes, line by line.
type Follower[T any] interface {
	// Next waits for something to send.
	Next(context.Context) (T, error)
	Close()
}

type (
	// Changes are what happens to the blocks of processes.
	Changes = Follower[changes.Batch]
	// Programs are those that run on the chips of processes.
	Programs = Follower[[]launches.Message]
)

// appendPrograms appends programs as lines.
func appendPrograms(dst []byte, list *[]launches.Message) (_ []byte, err error) {
	for i := range *list {
		if dst, err = launches.Append(dst, &(*list)[i]); err != nil {
			break
		}
	}
	return dst, err
}

// followed sends a client lines about the processes that it asks for, as far as it may
// see their blocks, until it leaves: every allocation and free, or every program that
// runs. One that reads slowly is told what holds, and learns how much it missed; one
// that does not read at all is dropped.
func followed[T any](s *Server, open func(allow func(pid, uid int) bool) Follower[T], add func([]byte, *T) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		wanted, ok := s.mayFollow(w, r, open != nil)
		if !ok {
			return
		}
		leave, ok := s.watchesOf(s.budgets.followers, w, r)
		if !ok {
			return
		}
		defer leave()
		who := callerOf(r)
		f := open(func(pid, uid int) bool {
			return wanted(pid) && who.owns(uid) && !s.Viewpoint(r).Hides(model.Value(uid))
		})
		defer f.Close()
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		sendLines(s, w, r, f, add)
	}
}

// sendLines sends lines to a client that follows processes, until it leaves.
func sendLines[T any](s *Server, w http.ResponseWriter, r *http.Request, f Follower[T], add func([]byte, *T) ([]byte, error)) {
	out := http.NewResponseController(w)
	var text []byte
	for {
		x, err := f.Next(r.Context())
		if err != nil {
			return // the client has left, or nothing is watched any more
		}
		if text, err = add(text[:0], &x); err != nil {
			s.log.Error("cannot encode lines about processes", "err", err)
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(WriteTimeout))
		if _, err := w.Write(wire.Harmless(text)); err != nil || out.Flush() != nil {
			return
		}
		if cap(text) > maxKeptText {
			text = nil // a process with many blocks was sent
		}
	}
}

// followQuery is of which processes a client wants lines.
type followQuery struct {
	PIDs []int `param:"pid" help:"of this process only; may be given again"`
}

// mayFollow reports whether a caller may be sent lines about processes, and which
// ones it asks for. One that may not has been told.
func (s *Server) mayFollow(w http.ResponseWriter, r *http.Request, watched bool) (wanted func(pid int) bool, ok bool) {
	var q followQuery
	switch {
	case !asked(w, r, &q):
		return nil, false
	case !watched:
		Fail(w, http.StatusNotFound, "processes are not watched by this ttmond; /v1/health says why")
		return nil, false
	case !callerOf(r).exists:
		Fail(w, http.StatusForbidden, "allocations and programs are for the users of their processes and for root: ask over the socket, or with a session")
		return nil, false
	}
	return func(pid int) bool { return len(q.PIDs) == 0 || slices.Contains(q.PIDs, pid) }, true
}

// maxKeptText is how much memory a follower keeps for the next lines.
const maxKeptText = 1 << 20
