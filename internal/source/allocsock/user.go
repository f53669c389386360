package allocsock

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
)

// One user cannot keep another waiting, and none can make the server grow:
//
//   - A user's connections take turns, and so do users; see lane. A turn is one read of
//     at most readSize bytes and what is in it.
//   - What takes longer, or may wait, is done between turns: texts, what a process
//     runs, what a dead one left. Only the connection it is for waits.
//   - Whatever a client can make grow is acquired from a budget first.

// Limits are the budgets of a server.
type Limits struct {
	Descriptors budget.Limit // connections, and processes that are watched
	Reporters   budget.Limit // processes that report
	Unread      budget.Limit // bytes of replies that clients have not read
	Texts       budget.Limit // texts that are being made
	Inspections budget.Limit // processes that are being inspected
	Stored      budget.Limit // connections that the service manager keeps for a crash
}

// DefaultLimits are good for a process that may have so many descriptors.
func DefaultLimits(descriptors int) Limits {
	// Sources, the API and a successor's streams need some of them.
	own := min(1536, descriptors/4)
	return Limits{
		Descriptors: budget.Divide(int64(descriptors - own)),
		Reporters:   budget.Limit{PerUID: 512, All: 4096, Reserve: 512},
		// A successor gets them while all clients wait, so they are few.
		Unread:      budget.Limit{PerUID: 1 << 20, All: 4 << 20, Reserve: 1 << 20},
		Texts:       budget.Limit{PerUID: 4, All: 64, Reserve: 16},
		Inspections: budget.Limit{PerUID: 2, All: 16, Reserve: 4},
		// systemd compares each with all that it has.
		Stored: budget.Limit{PerUID: 256, All: 4096, Reserve: 1024},
	}
}

// pools are the budgets at work.
type pools struct {
	descriptors, reporters, unread, texts, inspections, stored *budget.Pool
}

func newPools(l Limits, onRefuse func(budget.Refusal)) pools {
	return pools{
		descriptors: budget.NewPool("descriptors", l.Descriptors, onRefuse),
		reporters:   budget.NewPool("reporters", l.Reporters, onRefuse),
		unread:      budget.NewPool("unread_bytes", l.Unread, onRefuse),
		texts:       budget.NewPool("texts", l.Texts, onRefuse),
		inspections: budget.NewPool("looks", l.Inspections, nil), // a refusal loses nothing
		stored:      budget.NewPool("stored_connections", l.Stored, onRefuse),
	}
}

// Budgets returns the usage by user. It may be called from any goroutine.
func (s *Server) Budgets() []budget.State {
	p := &s.pools
	return []budget.State{
		p.descriptors.State(), p.reporters.State(), p.unread.State(), p.texts.State(), p.inspections.State(), p.stored.State(),
	}
}

func (s *Server) logRefusal(r budget.Refusal) {
	s.log.Warn("user reached a limit", "budget", r.Budget, "uid", r.UID, "used", r.Used, "used_by_all", r.All, "refused", r.Count)
}

// user is what is kept of one user.
type user struct {
	uid int
	// turn is held by the connection that is read.
	turn sync.Mutex

	// With Server.mu.
	conns     int       // open ones
	textAfter time.Time // when the next text may be made

	stores    float64 // connections that may be stored
	storesNow int     // were given at storesAt
	storesAt  time.Time

	lines        int // log lines since
	linesSince   time.Time
	lost         uint64    // lines left out
	fullLoggedAt time.Time // when a full ledger was last logged
}

// userOf returns the user with a uid. With mu.
func (s *Server) userOf(uid int) *user {
	u := s.users[uid]
	if u == nil {
		u = &user{uid: uid}
		s.users[uid] = u
	}
	return u
}

// manyUsers is when users without connections are dropped.
const manyUsers = 256

// removeUserConn records that a user has one connection less. A user without
// any is kept while its log lines count. With mu.
func (s *Server) removeUserConn(u *user) {
	now := time.Now()
	if u.conns--; u.conns > 0 || len(s.users) < manyUsers || now.Sub(s.usersSwept) < time.Minute {
		return
	}
	s.usersSwept = now
	for uid, u := range s.users {
		if u.conns == 0 && now.Sub(u.linesSince) > time.Minute {
			delete(s.users, uid)
		}
	}
}

// logLines and logText bound what one user can make ttmond write in a minute.
const (
	logLines = 60
	logText  = 4 << 10 // of a dump
)

// logLife logs that a process began or ended to report. Users whose processes do so all
// the time keep half of their lines for what is more telling. With mu.
func (s *Server) logLife(uid int, message string, args ...any) {
	if u := s.userOf(uid); u.lines < logLines/2 || time.Since(u.linesSince) > time.Minute || budget.Privileged(uid) {
		s.logFor(u, slog.LevelInfo, message, args...)
	}
}

// logFor logs an event that a user's client caused. With mu.
func (s *Server) logFor(u *user, level slog.Level, message string, args ...any) {
	if !s.log.Enabled(context.Background(), level) {
		return
	}
	if now := time.Now(); now.Sub(u.linesSince) > time.Minute {
		u.lines, u.linesSince = 0, now
	}
	if u.lines++; u.lines > logLines && !budget.Privileged(u.uid) {
		u.lost++
		s.count.lostLines.Add(1)
		return
	}
	if u.lost > 0 && u.lines == 1 {
		args = append(args, "left_out_before", u.lost)
		u.lost = 0
	}
	s.log.Log(context.Background(), level, message, args...)
}
