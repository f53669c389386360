package api

import (
	"net/http"
	"time"
)

// timed gives a client its time to take an answer from when the answer begins.
// What it takes to make one is not the client's: on a machine where ttmond is
// hardly ever run, the time would be over before there is anything to read, and
// no client would ever get an answer.
type timed struct {
	http.ResponseWriter
	limit time.Duration
	begun bool
}

func (t *timed) begin() {
	if !t.begun {
		t.begun = true
		_ = http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Now().Add(t.limit))
	}
}

func (t *timed) WriteHeader(status int) {
	t.begin()
	t.ResponseWriter.WriteHeader(status)
}

func (t *timed) Write(b []byte) (int, error) {
	t.begin()
	return t.ResponseWriter.Write(b)
}

// Unwrap lets an http.ResponseController reach the connection.
func (t *timed) Unwrap() http.ResponseWriter { return t.ResponseWriter }
