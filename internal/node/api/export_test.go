package api

import "time"

// For the tests of all calls, those of other packages among them.
type OneFailure = oneFailure

var (
	FailedFor = failed
	OpenAPI   = openAPI
)

// OfferedCalls are those that are answered.
func (s *Server) OfferedCalls() []Call { return s.calls }

// PresentCalls are those of this package.
func (s *Server) PresentCalls() []Call { return s.presentCalls() }

// SessionOf is a session of a user over TCP.
func (s *Server) SessionOf(uid int) string {
	who := caller{uid: uid, exists: true, remote: true}
	secret, _ := put(&s.sessions.live, session{who, time.Now().Add(time.Minute)}, maxSessions, time.Now())
	return secret
}

// SetHiding changes, by change, how processes are hidden, and has it known at once.
func (s *Server) SetHiding(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.hidingAt = time.Time{}
}

// Operation is a call as it is described.
func (c *Call) Operation() map[string]any { return c.operation() }
