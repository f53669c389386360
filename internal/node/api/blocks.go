package api

import (
	"net/http"
	"strconv"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// BlocksOf is the state of a process's allocators, and whose process it is.
type BlocksOf struct {
	Process *blocks.Process
	UID     int
	// Sites are the call sites that blocks have by number; nil: not known.
	Sites func() []callsite.Site
	// Frees are the pools of which the process freed at least as many blocks as it holds:
	// of one that only allocates, growth says nothing. nil: not known.
	Frees func() []blocks.ChipPool
}

// LedgerBlocks is what is known of a process that keeps a ledger; without one it
// is its blocks alone.
func LedgerBlocks(p *blocks.Process, uid int, l *ledgerfile.Ledger) BlocksOf {
	of := BlocksOf{Process: p, UID: uid}
	if l == nil {
		return of
	}
	of.Sites = func() []callsite.Site { return callsite.Sites(l) }
	of.Frees = func() []blocks.ChipPool { return blocks.Frees(l) }
	return of
}

// blocksOf answers with the allocators of a process: every pool and block.
func (s *Server) blocksOf(w http.ResponseWriter, r *http.Request) {
	if of, ok := s.ownBlocks(w, r); ok {
		out := map[string]any{"schema": "ttmon.blocks/1", "process": of.Process}
		if of.Sites != nil {
			out["sites"] = of.Sites()
		}
		if of.Frees != nil {
			out["frees"] = of.Frees()
		}
		Answer(w, http.StatusOK, out)
	}
}

// ownBlocks finds the allocators of the process that is asked about, if the
// caller may see them; who may not has been told. As with buffers, addresses are
// for their owners.
func (s *Server) ownBlocks(w http.ResponseWriter, r *http.Request) (of BlocksOf, ok bool) {
	pid, err := strconv.Atoi(r.PathValue("pid"))
	if err != nil {
		Fail(w, http.StatusBadRequest, "%q is not a pid", r.PathValue("pid"))
		return of, false
	}
	if s.opt.Blocks == nil {
		Fail(w, http.StatusNotFound, "allocators are not watched by this ttmond; /v1/health says why")
		return of, false
	}
	at, err := ParseMoment(r.URL.Query())
	switch {
	case err != nil:
		Fail(w, http.StatusBadRequest, "%v", err)
		return of, false
	case at.IsZero():
		of, ok = s.opt.Blocks(pid)
	case s.opt.BlocksAt == nil:
		Fail(w, http.StatusNotFound, "the blocks of another time are not kept by a ttmond: ttmon record keeps them")
		return of, false
	default:
		of, ok = s.opt.BlocksAt(pid, at)
	}
	if !ok || s.Viewpoint(r).Hides(model.Value(of.UID)) {
		Fail(w, http.StatusNotFound, "the allocators of process %d are not known", pid)
		return of, false
	}
	if !callerOf(r).owns(of.UID) {
		Fail(w, http.StatusForbidden, "the blocks of process %d are for its user and for root; its sums are in /v1/snapshot", pid)
		return of, false
	}
	return of, true
}
