package callsite

import "github.com/ttmon/ttmon/lib/ledgerfile"

// Site is a call site of a ledger, as its blocks have it by number.
type Site struct {
	Number int                `json:"site"`
	Tag    string             `json:"tag,omitempty"`
	Stack  []ledgerfile.Frame `json:"stack,omitempty"`  // innermost first
	Blocks uint64             `json:"blocks"`           // live
	Bytes  uint64             `json:"bytes"`            // of them, over all banks
	Tensor string             `json:"tensor,omitempty"` // that its buffers are for: "[1,1,32,32] bfloat16 tile interleaved"
}

// Sites are the call sites that hold something, and say more than that.
func Sites(l *ledgerfile.Ledger) []Site {
	out := []Site{}
	for i := range l.Sites {
		s := &l.Sites[i]
		if s.Live.Blocks == 0 || s.Tag == "" && s.Node == 0 && s.Tensor == "" {
			continue
		}
		banks := uint64(l.Lists[s.List].Banks)
		out = append(out, Site{i, s.Tag, l.Stack(s.Node), s.Live.Blocks, s.Live.Bytes * banks, s.Tensor})
	}
	return out
}
