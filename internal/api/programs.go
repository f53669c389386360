package api

import (
	"context"
	"net/http"
	"time"

	"github.com/ttmon/ttmon/internal/launches"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/wire"
)

// Programs sends the programs that run on the chips of processes.
type Programs interface {
	// Next waits for some.
	Next(context.Context) ([]launches.Message, error)
	Close()
}

// programs sends every program that ran on a chip, line by line, of the processes
// that the caller may see the blocks of. A client that reads slowly learns from the
// numbers how many it missed; one that does not read at all is dropped.
func (s *Server) programs(w http.ResponseWriter, r *http.Request) {
	who := callerOf(r)
	s.follow(w, r, s.opt.Programs != nil, func(wanted func(pid int) bool) lineSource {
		f := s.opt.Programs(func(pid, uid int) bool {
			return wanted(pid) && who.owns(uid) && !s.Viewpoint(r).Hides(model.Value(uid))
		})
		return lineSource{f.Close, func(ctx context.Context, dst []byte) ([]byte, error) {
			list, err := f.Next(ctx)
			for i := range list {
				if dst, err = launches.Append(dst, &list[i]); err != nil {
					s.log.Error("cannot encode programs", "err", err)
					break
				}
			}
			return dst, err
		}}
	})
}

// lineSource has lines for a client.
type lineSource struct {
	close func()
	// next waits for lines, and appends them.
	next func(ctx context.Context, dst []byte) ([]byte, error)
}

// follow sends a client lines about the processes that it asks for, until it leaves.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, watched bool, open func(wanted func(pid int) bool) lineSource) {
	wanted, ok := s.mayFollow(w, r, watched)
	if !ok {
		return
	}
	leave, ok := s.watchesOf(s.budgets.followers, w, r)
	if !ok {
		return
	}
	defer leave()
	f := open(wanted)
	defer f.close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return
	}
	var text []byte
	for {
		var err error
		if text, err = f.next(r.Context(), text[:0]); err != nil {
			return // the client has left, or nothing is watched any more
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
