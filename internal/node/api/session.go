package api

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
)

// A browser comes over TCP, where the kernel does not tell who it is. So a
// user fetches a ticket over the Unix socket, where it does (`ttmon web`), and
// the page gives it for a session. The session travels in a header and not in a
// cookie: cookies of 127.0.0.1 go to every port of it, whatever listens there.
const (
	ticketLife      = 2 * time.Minute
	sessionLife     = 12 * time.Hour
	maxTickets      = 64 // of a user
	maxSessions     = 64
	maxAllSessions  = 1024
	rootsSessions   = 64 // of those, for root
	SessionHeader   = "X-Ttmon-Session"
	maxSessionInput = 1 << 10
)

// sessions are the tickets and sessions that are good. They are kept in memory
// only: after a restart users fetch new ones.
type sessions struct {
	mu      sync.Mutex
	tickets map[string]session
	live    map[string]session
}

type session struct {
	who  caller
	ends time.Time
}

// put keeps a new secret for a caller; false if the caller has too many.
func put(m *map[string]session, s session, most int, now time.Time) (secret string, ok bool) {
	if *m == nil {
		*m = map[string]session{}
	}
	own := int64(0)
	for key, old := range *m {
		if now.After(old.ends) {
			delete(*m, key)
		} else if old.who.uid == s.who.uid {
			own++
		}
	}
	limit := budget.Limit{PerUID: int64(most), All: maxAllSessions, Reserve: rootsSessions}
	if !limit.Allows(s.who.uid, own, int64(len(*m)), 1) {
		return "", false
	}
	secret = rand.Text()
	(*m)[secret] = s
	return secret, true
}

// ticket gives a caller whom the kernel knows a ticket for the page.
func (s *Server) ticket(w http.ResponseWriter, r *http.Request) {
	who := callerOf(r)
	if !who.exists || who.remote {
		Fail(w, http.StatusForbidden, "a ticket is given to users of this host: ttmon web")
		return
	}
	now := time.Now()
	s.sessions.mu.Lock()
	secret, ok := put(&s.sessions.tickets, session{who, now.Add(ticketLife)}, maxTickets, now)
	s.sessions.mu.Unlock()
	if !ok {
		Fail(w, http.StatusTooManyRequests, "you have %d unused tickets; they expire within %v", maxTickets, ticketLife)
		return
	}
	Answer(w, http.StatusOK, map[string]any{"schema": "ttmon.ticket/1", "ticket": secret, "address": s.address(), "expires_s": ticketLife.Seconds()})
}

// address is where the page is served; empty: nowhere, or by another program.
func (s *Server) address() string {
	if s.opt.Address == nil {
		return ""
	}
	return s.opt.Address()
}

// session gives a session for a ticket, once.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	var given struct{ Ticket string }
	err := json.NewDecoder(io.LimitReader(r.Body, maxSessionInput)).Decode(&given)
	if err != nil {
		Fail(w, http.StatusBadRequest, `a session takes {"ticket": "…"}`)
		return
	}
	if refusedInClear(w, r) {
		return
	}
	now := time.Now()
	s.sessions.mu.Lock()
	t, ok := s.sessions.tickets[given.Ticket]
	secret := ""
	if s.opt.Key != "" && subtle.ConstantTimeCompare([]byte(given.Ticket), []byte(s.opt.Key)) == 1 {
		t, ok = session{caller{uid: os.Geteuid(), exists: true}, now.Add(ticketLife)}, true
	}
	room := true
	if ok = ok && now.Before(t.ends); ok {
		t.who.remote = true
		secret, room = put(&s.sessions.live, session{t.who, now.Add(sessionLife)}, maxSessions, now)
	}
	if room { // else the ticket is good for another attempt
		delete(s.sessions.tickets, given.Ticket)
	}
	s.sessions.mu.Unlock()
	switch {
	case !ok:
		Fail(w, http.StatusForbidden, "this ticket is unknown, was used before, or has expired (it is valid for %v): ttmon web prints another", ticketLife)
		return
	case !room:
		Fail(w, http.StatusTooManyRequests, "too many sessions: a user has up to %d, all together %d; sign out of one, or wait until one ends (after %v)", maxSessions, maxAllSessions-rootsSessions, sessionLife)
		return
	}
	Answer(w, http.StatusOK, map[string]any{"schema": "ttmon.session/1", "session": secret})
}

// endSession ends the session that the call is made with.
func (s *Server) endSession(w http.ResponseWriter, r *http.Request) {
	s.sessions.mu.Lock()
	delete(s.sessions.live, r.Header.Get(SessionHeader))
	s.sessions.mu.Unlock()
	Answer(w, http.StatusOK, map[string]any{"schema": "ttmon.session/1", "session": nil})
}

// refusedInClear refuses a ticket or session that crossed a network unencrypted.
func refusedInClear(w http.ResponseWriter, r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	inClear := r.TLS == nil && ok && !at.IP.IsLoopback()
	if inClear {
		Fail(w, http.StatusForbidden, "a session would cross the network in the clear: serve the page with TLS (listen.web_config)")
	}
	return inClear
}

// known returns the user of a session; without one the caller is unknown.
func (s *sessions) known(secret string) caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	if live, ok := s.live[secret]; ok && secret != "" && time.Now().Before(live.ends) {
		return live.who
	}
	return caller{remote: true}
}

// me answers who the viewer is, and what it may see.
func (s *Server) me(w http.ResponseWriter, r *http.Request) {
	who, v := callerOf(r), s.Viewpoint(r)
	out := map[string]any{"schema": "ttmon.me/1", "uid": nil, "user": nil, "sees": "all", "hiding": v.Level}
	if who.exists {
		out["uid"], out["user"] = who.uid, strconv.Itoa(who.uid)
		if u, err := user.LookupId(strconv.Itoa(who.uid)); err == nil {
			out["user"] = u.Username
		}
	}
	switch {
	case who.sees():
		out["text"] = "Signed in as root"
	case v.Level > 0:
		out["sees"] = "hidden"
		out["text"] = "This host hides other users' processes: their memory is in the sums, their names are not shown."
		if who.exists {
			out["text"] = fmt.Sprintf("Signed in as %s: this host hides other users' processes; their memory is in the sums, their names are not shown.", out["user"])
		}
	case who.exists:
		out["sees"] = "own"
		out["text"] = fmt.Sprintf("Signed in as %s: you see the sums of all users, and the blocks of your own processes.", out["user"])
	default:
		out["sees"] = "public"
		out["text"] = "Not signed in: you see what any user of this host sees. For the blocks of your own processes open the address that ttmon web prints."
	}
	Answer(w, http.StatusOK, out)
}

// Handler answers calls of the API that come over TCP. There only a session
// identifies the caller; nothing can be changed there.
func (s *Server) Handler() http.Handler {
	h := s.handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" && r.URL.Path == "/v1/reload" {
			Fail(w, http.StatusForbidden, "nothing can be changed over TCP: use the socket")
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, s.holder(r))))
	})
}

// holder returns the user of a request's session; without one the caller is unknown.
func (s *Server) holder(r *http.Request) caller {
	secret := r.Header.Get(SessionHeader)
	if s.opt.Upstream != nil {
		if up := s.opt.Upstream(); up != nil {
			return s.viewers.of(r.Context(), up, secret)
		}
	}
	return s.sessions.known(secret)
}

// onBehalf answers calls of the Unix socket that carry a session for whom it
// belongs to: a ttmon-server asks for its viewers so. With an invalid session
// the caller is unknown, also where the connecting user is known.
func (s *Server) onBehalf(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, given := r.Header[SessionHeader]; given {
			if r.Method == "POST" && r.URL.Path == "/v1/reload" {
				Fail(w, http.StatusForbidden, "nothing can be changed with a session: use the socket")
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), callerKey{}, s.holder(r)))
		}
		h.ServeHTTP(w, r)
	})
}
