package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/blocks/changes"
	"github.com/ttmon/ttmon/internal/model"
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
func (s *Server) allocations(w http.ResponseWriter, r *http.Request) {
	who := callerOf(r)
	s.follow(w, r, s.opt.Changes != nil, func(wanted func(pid int) bool) lineSource {
		f := s.opt.Changes(func(pid, uid int) bool {
			return wanted(pid) && who.owns(uid) && !s.Viewpoint(r).Hides(model.Value(uid))
		})
		return lineSource{f.Close, func(ctx context.Context, dst []byte) ([]byte, error) {
			b, err := f.Next(ctx)
			if err != nil {
				return dst, err
			}
			if dst, err = changes.Append(dst, &b); err != nil {
				s.log.Error("cannot encode allocation events", "err", err)
			}
			return dst, err
		}}
	})
}

// mayFollow reports whether a caller may be sent lines about processes, and which
// ones it asks for. One that may not has been told.
func (s *Server) mayFollow(w http.ResponseWriter, r *http.Request, watched bool) (wanted func(pid int) bool, ok bool) {
	only, err := parsePIDs(r.URL.Query()["pid"])
	switch {
	case err != nil:
		Fail(w, http.StatusBadRequest, "pid: %q is not a pid", err.Error())
		return nil, false
	case !watched:
		Fail(w, http.StatusNotFound, "processes are not watched by this ttmond; /v1/health says why")
		return nil, false
	case !callerOf(r).exists:
		Fail(w, http.StatusForbidden, "allocations and programs are for the users of their processes and for root: ask over the socket, or with a session")
		return nil, false
	}
	return func(pid int) bool { return len(only) == 0 || slices.Contains(only, pid) }, true
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
