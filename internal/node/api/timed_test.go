package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// An answer that took longer to make than a client has to take it is taken all
// the same.
func TestTimeBeginsWithTheAnswer(t *testing.T) {
	for _, own := range []bool{true, false} {
		web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(50 * time.Millisecond) // the time of the server's own is over
			if own {
				w = &timed{ResponseWriter: w, limit: time.Minute}
			}
			_, _ = io.WriteString(w, "late")
		}))
		web.Config.WriteTimeout = time.Millisecond
		web.Start()
		r, err := http.Get(web.URL)
		if err == nil {
			var b []byte
			b, err = io.ReadAll(r.Body)
			r.Body.Close()
			if string(b) != "late" && err == nil {
				t.Errorf("answered %q", b)
			}
		}
		if (err == nil) != own {
			t.Errorf("time of its own %v: %v", own, err)
		}
		web.Close()
	}
}
