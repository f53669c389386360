package unixhttp

import (
	"slices"
	"strings"
)

// Handler answers requests.
type Handler interface {
	Serve(Writer, *Request)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(Writer, *Request)

// Serve implements Handler.
func (f HandlerFunc) Serve(w Writer, r *Request) { f(w, r) }

// Mux finds the handler of a request by its method and path. The zero Mux has none.
type Mux struct{ routes []route }

// route is a pattern like "GET /v1/processes/{pid}/blocks". One without a method
// takes all; one that ends in a slash takes all paths below.
type route struct {
	method   string
	segments []string
	below    bool
	h        Handler
}

// Handle adds a route. Those that say more come before those that say less,
// whatever the order they are added in.
func (m *Mux) Handle(pattern string, h Handler) {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = "", pattern
	}
	x := route{method: method, segments: strings.Split(strings.TrimPrefix(path, "/"), "/"), h: h}
	if last := len(x.segments) - 1; x.segments[last] == "" {
		x.segments, x.below = x.segments[:last], true
	}
	m.routes = append(m.routes, x)
	slices.SortStableFunc(m.routes, func(a, b route) int { return b.weight() - a.weight() })
}

// HandleFunc adds a route to a function.
func (m *Mux) HandleFunc(pattern string, f func(Writer, *Request)) { m.Handle(pattern, HandlerFunc(f)) }

// Serve implements Handler. A request without a route is answered by 404: a Mux
// that wants to say more has a route "/".
func (m *Mux) Serve(w Writer, r *Request) {
	segments := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	for i := range m.routes {
		if values, ok := m.routes[i].match(r.Method, segments); ok {
			found := *r
			found.values = values
			m.routes[i].h.Serve(w, &found)
			return
		}
	}
	w.WriteHeader(StatusNotFound)
}

func (x *route) match(method string, segments []string) (values map[string]string, ok bool) {
	if x.method != "" && x.method != method && (x.method != "GET" || method != "HEAD") {
		return nil, false
	}
	if n := len(segments) - len(x.segments); x.below && n < 1 || !x.below && n != 0 {
		return nil, false
	}
	for i, want := range x.segments {
		name, wild := wildcard(want)
		switch {
		case !wild && want != segments[i], wild && segments[i] == "":
			return nil, false
		case wild:
			if values == nil {
				values = map[string]string{}
			}
			values[name] = segments[i]
		}
	}
	return values, true
}

// weight is larger for routes that say more.
func (x *route) weight() int {
	n := 0
	if x.method != "" {
		n++
	}
	if !x.below {
		n += 2
	}
	for _, s := range x.segments {
		n += 4
		if _, wild := wildcard(s); !wild {
			n += 4
		}
	}
	return n
}

func wildcard(segment string) (name string, ok bool) {
	if rest, ok := strings.CutPrefix(segment, "{"); ok {
		return strings.CutSuffix(rest, "}")
	}
	return "", false
}

// StripPrefix hands requests on without the beginning of their path.
func StripPrefix(prefix string, h Handler) Handler {
	return HandlerFunc(func(w Writer, r *Request) {
		short, u := *r, *r.URL
		u.Path, u.RawPath = strings.TrimPrefix(u.Path, prefix), strings.TrimPrefix(u.RawPath, prefix)
		short.URL = &u
		h.Serve(w, &short)
	})
}
