package why

import (
	"testing"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/story"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// TestRequester: a small function that makes all buffers is not named as the one that
// asked; a line that asked before from another place of the same function is.
func TestRequester(t *testing.T) {
	frame := func(line int, function string) ledgerfile.Frame {
		return ledgerfile.Frame{File: "/a/serve.py", Line: line, Function: function}
	}
	helper, scores, cache := frame(2, "t"), frame(5, "scores"), frame(4, "kv_cache")
	for name, tt := range map[string]struct {
		request []ledgerfile.Frame
		held    [][]ledgerfile.Frame
		want    string
		around  string
	}{
		"alone":                   {[]ledgerfile.Frame{helper, scores, frame(9, "main")}, nil, "serve.py:2 t", "called from serve.py:5, serve.py:9"},
		"beside another function": {[]ledgerfile.Frame{helper, scores, frame(9, "main")}, [][]ledgerfile.Frame{{helper, cache, frame(8, "main")}}, "serve.py:5 scores", "through serve.py:2, called from serve.py:9"},
		"again, from a loop":      {[]ledgerfile.Frame{scores, frame(9, "main")}, [][]ledgerfile.Frame{{scores, frame(8, "main")}}, "serve.py:5 scores", "called from serve.py:9"},
		"not known":               {nil, [][]ledgerfile.Frame{{helper}}, " ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &failure.Record{Stack: tt.request}
			for i, s := range tt.held {
				r.Sites = append(r.Sites, failure.Site{Number: uint32(i + 1), Stack: s})
			}
			line, function := story.Requester(r)
			if line+" "+function != tt.want || around(r) != tt.around {
				t.Errorf("%s %s, %q", line, function, around(r))
			}
		})
	}
}
