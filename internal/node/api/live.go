package api

import (
	"bytes"
	"compress/flate"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// pageEvents is a snapshot as a page receives it: two events, the snapshot and the
// text about it.
type pageEvents struct {
	plain  []byte
	packed []byte // the same as a piece of a gzip stream; nil until a page asks for it
}

// events returns the events of a snapshot. They are made and packed once for all
// viewers who see the same.
func (t *tick) events(v Viewpoint, packed bool, said func(*model.Snapshot) []byte) []byte {
	v = v.on(t.snap)
	body := t.encode(v)
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.pages[v]
	if x == nil {
		x = &pageEvents{plain: encodeEvents(t.seq, said(v.Filter(t.snap)), body)}
		if t.pages == nil {
			t.pages = map[Viewpoint]*pageEvents{}
		}
		if len(t.pages) < maxViews {
			t.pages[v] = x
		}
	}
	if !packed {
		return x.plain
	}
	if x.packed == nil {
		x.packed = pack(x.plain)
	}
	return x.packed
}

// encodeEvents are the two events of a snapshot that a page gets.
func encodeEvents(seq uint64, said, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: said\nid: %d\ndata: %s\n\nevent: snapshot\nid: %d\ndata: ", seq, wire.Harmless(said), seq)
	b.Write(bytes.TrimRight(body, "\n"))
	b.WriteString("\n\n")
	return b.Bytes()
}

// gzipHeader begins every packed stream.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// pack compresses a piece of a stream by itself: it refers to nothing before it
// and ends at a byte, so that the same bytes go to viewers who began at different
// times. The stream has no end, so the sums that would stand there are not needed.
func pack(plain []byte) []byte {
	var b bytes.Buffer
	z, _ := flate.NewWriter(&b, flate.BestSpeed)
	_, _ = z.Write(plain) // a buffer takes everything
	_ = z.Flush()
	return b.Bytes()
}

// page streams snapshots to a page: as watch does, with what is said about each,
// packed where the browser can unpack it.
func (s *Server) page(w http.ResponseWriter, r *http.Request, interval time.Duration) {
	packed := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	if packed {
		w.Header().Set("Content-Encoding", "gzip")
	}
	leave, ok := s.BeginEvents(w, r)
	if !ok {
		return
	}
	defer leave()
	if packed {
		if _, err := w.Write(gzipHeader); err != nil {
			return
		}
	}
	s.eachTick(w, r, interval, func(t *tick) error {
		_, err := w.Write(t.events(s.Viewpoint(r), packed, s.opt.Said))
		return err
	})
}
