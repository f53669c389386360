package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A change of a source without its bundle is noticed here; that the bundle is
// really made from them is what make web-check finds out. A file that is new has no
// part in the page until one of these imports it.
func TestBundleIsOfTheseSources(t *testing.T) {
	list, err := dist.ReadFile("dist/sources.sum")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for line := range strings.Lines(string(list)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if b, err := os.ReadFile("../../../" + name); err != nil || fmt.Sprintf("%x", sha256.Sum256(b)) != sum {
			t.Errorf("%s is not what the committed bundle was made from: run make web (%v)", name, err)
		}
		files++
	}
	if files < 10 {
		t.Errorf("the bundle was made from %d files only", files)
	}
}

func get(t *testing.T, path string, change func(*http.Request)) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestViewsArePages(t *testing.T) {
	for path, want := range map[string]int{
		"/": 200, "/device/0000:41:00.0": 200, "/processes": 200, "/process/42": 200, "/runs": 200, "/runs/r7": 200, "/failures": 200, "/failures/f7": 200, "/memory": 200, "/topology": 200, "/events": 200, "/fleet": 200,
		"/page.js": 200, "/stream.js": 200, "/style.css": 200, "/icon.svg": 200, "/licences.txt": 200,
		"/device/": 404, "/device/a/b": 404, "/nothing": 404, "/dist/page.js": 404, "/../web.go": 404, "/processes/": 404,
	} {
		t.Run(path, func(t *testing.T) {
			if got := get(t, path, nil).StatusCode; got != want {
				t.Errorf("status %d, want %d", got, want)
			}
		})
	}
}

func TestPolicyAllowsNothingInline(t *testing.T) {
	r := get(t, "/", nil)
	if p := r.Header.Get("Content-Security-Policy"); p != policy || strings.Contains(p, "unsafe") {
		t.Errorf("the policy is %q", p)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, inline := range []string{`<script(?:[^>]*)>[^<]`, `<style`, `\sstyle=`, `\son\w+=`, `javascript:`, `https?://`} {
		if m := regexp.MustCompile(inline).Find(body); m != nil {
			t.Errorf("index.html has %q, which the policy forbids", m)
		}
	}
}

// What a browser loads before it shows anything.
func TestFirstLoadIsSmall(t *testing.T) {
	total := 0
	for _, path := range []string{"/", "/page.js", "/stream.js", "/style.css", "/icon.svg"} {
		r := get(t, path, func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		total += len(b)
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if _, err := io.Copy(io.Discard, z); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	t.Logf("%d bytes compressed", total)
	if total > 150_000 {
		t.Errorf("the first load is %d bytes compressed, more than 150 KB", total)
	}
}

func TestUnchangedIsNotSentAgain(t *testing.T) {
	tag := get(t, "/page.js", nil).Header.Get("ETag")
	r := get(t, "/page.js", func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
	if tag == "" || r.StatusCode != http.StatusNotModified {
		t.Errorf("with the tag %q the status is %d", tag, r.StatusCode)
	}
}
