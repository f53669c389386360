package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Ask makes another call for the viewer whose request it is, as if it came from them:
// this process answers it, or the ttmond that is followed. It takes no place among their
// queries: the request has one.
func (s *Server) Ask(r *http.Request, path string, query url.Values) *Reply {
	reply := new(Reply)
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		Fail(reply, http.StatusBadRequest, "%v", err)
		return reply
	}
	ask.Header = r.Header
	s.within.ServeHTTP(reply, ask)
	return reply
}

// Answers reports whether a call of this package is answered, by this process or by the
// ttmond that is followed.
func (s *Server) Answers(path string) bool {
	for _, c := range s.presentCalls() {
		if c.Path == path {
			return c.Serve != nil || c.Live && s.opt.Upstream != nil
		}
	}
	return false
}

// maxReply is more than a ttmond answers, and what its clients take.
const maxReply = 256 << 20

// Reply is the answer to a call that another one needed. It is an http.ResponseWriter.
type Reply struct {
	header http.Header
	status int
	body   bytes.Buffer
	cut    bool // it was too long
}

var errTooLong = errors.New("ttmond answered too much")

// Decode reads an answer in JSON; of one that is a refusal it returns the status.
func (w *Reply) Decode(v any) error {
	switch {
	case w.cut:
		return errTooLong
	case w.status != http.StatusOK:
		return fmt.Errorf("status %d", w.status)
	}
	return json.Unmarshal(w.body.Bytes(), v)
}

// OK reports whether it is an answer; where it is a refusal, that is handed on to to.
func (w *Reply) OK(to http.ResponseWriter) bool {
	switch {
	case w.cut:
		Fail(to, http.StatusInsufficientStorage, "%v", errTooLong)
	case w.status != http.StatusOK:
		to.Header().Set("Content-Type", "application/json")
		to.Header().Set("Cache-Control", "no-store")
		to.WriteHeader(w.status)
		_, _ = to.Write(w.body.Bytes()) // the client has left
	default:
		return true
	}
	return false
}

// Body is the answer as it came.
func (w *Reply) Body() []byte { return w.body.Bytes() }

// Header implements http.ResponseWriter.
func (w *Reply) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *Reply) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *Reply) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(b) > maxReply {
		w.cut = true
		return len(b), nil
	}
	return w.body.Write(b)
}
