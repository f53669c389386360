package httpguard

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Options of a Guard.
type Options struct {
	// OnlyLocal refuses requests for names that do not mean this machine: a name
	// that an attacker has point to 127.0.0.1.
	OnlyLocal bool
	// Page reports whether a path is a file of the page, which costs nothing and
	// may be linked to from anywhere.
	Page func(path string) bool
}

// writeLimit is how long an answer may take whose handler sets no limit.
const writeLimit = 30 * time.Second

// Guard refuses requests that web pages of other origins make browsers send:
// their answers would not be shown to them, but they cost as much as others.
func Guard(h http.Handler, o Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case o.OnlyLocal && !localName(r.Host):
			http.Error(w, "this address is for this machine: ask for localhost or 127.0.0.1", http.StatusForbidden)
			return
		case foreign(r) && !o.linked(r):
			http.Error(w, "requests from web pages of other origins are refused", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeLimit))
		h.ServeHTTP(w, r)
	})
}

// linked reports whether a request opens the page from a link.
func (o Options) linked(r *http.Request) bool {
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	return safe && o.Page != nil && o.Page(r.URL.Path)
}

// foreign reports whether a browser sends a request on behalf of a page of
// another origin. Programs that are no browsers send none of these headers.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return false // also behind a proxy that changes Host
	case "cross-site", "same-site":
		return true
	case "none":
		return false // typed, or a bookmark
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		return !sameHost(origin, r.Host)
	}
	if referer := r.Header.Get("Referer"); referer != "" {
		return !sameHost(referer, r.Host)
	}
	return false
}

// sameHost reports whether an origin or address has this Host header.
func sameHost(address, host string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// localName reports whether a Host header means this machine by its nature.
func localName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}
