// Package web is the page that ttmond serves: its files, made from the sources
// in web/ by tools/web, and how a browser gets them.
//
// It is an end of the data flow, and knows nothing of it: the page asks the API
// for everything that it shows.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed dist
var dist embed.FS

// policy lets the page load what is served beside it and nothing else: no inline
// script or style, no other origin, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// views are the addresses of the page itself; the script reads them.
var views = []string{"/", "/device/", "/processes", "/process/", "/runs", "/runs/", "/memory", "/failures", "/failures/", "/topology", "/events", "/fleet"}

// file is one file as it is sent.
type file struct {
	kind, tag     string
	plain, packed []byte
}

// Handler serves the page.
func Handler() http.Handler {
	files := map[string]*file{}
	entries, err := fs.ReadDir(dist, "dist")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	for _, e := range entries {
		b, err := dist.ReadFile("dist/" + e.Name())
		if err != nil {
			panic("BUG: " + err.Error())
		}
		files["/"+e.Name()] = newFile(e.Name(), b)
	}
	index := files["/index.html"]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "the page is only for reading", http.StatusMethodNotAllowed)
			return
		}
		f := files[r.URL.Path]
		if f == nil && isView(r.URL.Path) {
			f = index
		}
		if f == nil {
			http.NotFound(w, r)
			return
		}
		f.send(w, r)
	})
}

func isView(p string) bool {
	for _, v := range views {
		if name, ok := strings.CutPrefix(p, v); ok && (name == "") == !takesName(v) && !strings.Contains(name, "/") {
			return true
		}
	}
	return false
}

// takesName reports whether a view is about something that is named after it.
func takesName(view string) bool { return view != "/" && strings.HasSuffix(view, "/") }

func newFile(name string, b []byte) *file {
	sum := sha256.Sum256(b)
	f := &file{kind: mime.TypeByExtension(path.Ext(name)), tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, plain: b}
	switch path.Ext(name) { // whatever the machine's own table says
	case ".js":
		f.kind = "text/javascript; charset=utf-8"
	case ".sum", ".txt":
		f.kind = "text/plain; charset=utf-8"
	}
	var z bytes.Buffer
	w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression)
	_, _ = w.Write(b)
	_ = w.Close()
	f.packed = z.Bytes()
	return f
}

func (f *file) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache") // asked again, and not sent again
	h.Set("ETag", f.tag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	b := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		b = f.packed
	}
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(b)
}
