package allocsock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/budget"
)

// The rules of the loop. One goroutine serves all clients, so:
//
//   - One step, what is done for one client before the next has its turn, is
//     to take no longer than stepTime. Reads adapt to it, see conn.appetite; and
//     what has been read is left for later where it takes too long, see resume.
//   - In one turn, from one wait to the next, a user gets at most share, and all
//     but root together othersTime. A user who has used it up is passed over, and is
//     served in a later turn: root first, then the one that has waited longest. Each
//     user's connections are in an epoll set of their own, so that many of one
//     user are not in front of another's.
//   - Work for no user in particular, new clients, results, exits of processes, is a
//     chore, and gets choreTime in a turn, new clients acceptTime.
//   - What takes longer, or may wait, is done elsewhere: texts, what a process
//     runs, what a dead one left. The connection it is for is parked meanwhile.
//   - What a process sent before it exited is read in slices; see dying.go.
//   - Whatever a client can make grow is acquired from a budget first.
//
// So a turn takes some milliseconds at most, whatever a client does. The loop
// measures its steps and turns; see Loop.
const (
	stepTime   = 500 * time.Microsecond
	share      = 500 * time.Microsecond
	othersTime = time.Millisecond
	rootShare  = 2 * time.Millisecond
	choreTime  = 250 * time.Microsecond
	acceptTime = time.Millisecond
)

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

// user is the state of the loop for one user.
type user struct {
	uid   int
	conns int // open ones
	set   int // epoll set of its connections, in that of the loop; -1 without any

	turn  uint64 // the turn that spent is of
	spent time.Duration

	served   uint64  // the turn in which it was last served
	isDue    bool    // it is in Server.turnOf
	woken    bool    // its set has something
	swept    bool    // its hot connections are to be read
	hot      []*conn // are swept instead of waited for
	hotFrom  int
	resuming []*conn // to continue with
	// sweptFirst says that the hot connections came first in the last turn.
	sweptFirst bool

	textAfter time.Time // when the next text may be made

	stores    float64 // connections that may be stored
	storesNow int     // were given at storesAt
	storesAt  time.Time

	lines        int // log lines since
	linesSince   time.Time
	lost         uint64    // lines left out
	fullLoggedAt time.Time // when a full ledger was last logged
}

// userOf returns the user with a uid.
func (s *Server) userOf(uid int) *user {
	u := s.users[uid]
	if u == nil {
		u = &user{uid: uid, set: -1}
		s.users[uid] = u
	}
	return u
}

// addUserConn returns the user with a uid, for one more connection.
func (s *Server) addUserConn(uid int) (*user, error) {
	u := s.userOf(uid)
	if u.set < 0 {
		set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("making an epoll set: %w", err)
		}
		if err := s.watch(set, unix.EPOLLIN, watch{user: u}); err != nil {
			unix.Close(set)
			return nil, err
		}
		u.set = set
		s.pools.descriptors.Force(uid, 1) // overdrawn by one at most: the next connection is refused
	}
	u.conns++
	return u, nil
}

// removeUserConn records that a user has one connection less. A user without
// any is kept while its log lines count.
func (s *Server) removeUserConn(u *user) {
	if u.conns--; u.conns > 0 {
		return
	}
	s.unwatch(u.set)
	u.set = -1
	s.pools.descriptors.Release(u.uid, 1)
	if len(s.users) < manyUsers || s.now.Sub(s.usersSwept) < time.Minute {
		return
	}
	s.usersSwept = s.now
	for uid, u := range s.users {
		if u.conns == 0 && s.now.Sub(u.linesSince) > time.Minute {
			delete(s.users, uid)
		}
	}
}

// schedule has a user served in this turn, if there is time.
func (s *Server) schedule(u *user) {
	if !u.isDue {
		u.isDue = true
		s.turnOf = append(s.turnOf, u)
	}
}

// serveUsers serves the users with something to read: root first, then those
// who have waited longest.
func (s *Server) serveUsers() {
	sweeping := s.scheduleHot()
	for _, u := range s.resuming {
		s.schedule(u)
	}
	if len(s.turnOf) == 0 {
		return
	}
	s.orderUsers()
	for i, u := range s.turnOf {
		if s.hasShare(u) {
			u.served = s.turn
			s.resume(u)
			s.readClients(u, &sweeping)
		} else if u.swept {
			sweeping.left = true
		}
		u.isDue, u.woken, u.swept = false, false, false
		s.turnOf[i] = nil
	}
	s.turnOf = s.turnOf[:0]
	s.resuming = slices.DeleteFunc(s.resuming, func(u *user) bool { return len(u.resuming) == 0 })
	s.endSweep(&sweeping)
}

// readClients reads what the clients of a user sent, as long as its share lasts. Those
// that are swept and those that are waited for come first in turns: clients that
// write without a pause use up the share, and would keep the others waiting for as
// long as they write.
func (s *Server) readClients(u *user, found *sweeping) {
	if u.sweptFirst = !u.sweptFirst; u.sweptFirst {
		s.sweep(u, found)
		s.serveUser(u)
	} else {
		s.serveUser(u)
		s.sweep(u, found)
	}
}

// orderUsers sorts the users by precedence.
func (s *Server) orderUsers() {
	if len(s.turnOf) < 2 {
		return
	}
	slices.SortFunc(s.turnOf, func(a, b *user) int {
		switch rootA, rootB := budget.Privileged(a.uid), budget.Privileged(b.uid); {
		case rootA && !rootB:
			return -1
		case rootB && !rootA:
			return 1
		}
		return cmp.Compare(a.served, b.served)
	})
}

// serveUser serves the connections of a user that have something to read, as
// long as its share lasts. However many they are, other users' are not behind
// them.
func (s *Server) serveUser(u *user) {
	for u.woken && s.hasShare(u) && u.set >= 0 && len(u.resuming) == 0 {
		n, err := epollNow(u.set, s.ready[:])
		if err != nil || n == 0 {
			return
		}
		for i := range s.ready[:n] {
			if !s.hasShare(u) || len(u.resuming) > 0 {
				return // the others are reported again
			}
			e := &s.ready[i]
			if c := s.watched[e.Fd].conn; c != nil && !c.parked {
				s.serveConn(c, e.Events)
				s.endStep(u)
			}
		}
		if n < len(s.ready) {
			return
		}
	}
}

// manyUsers is when users without connections are dropped.
const manyUsers = 256

// hasShare reports whether a user has time left in this turn.
func (s *Server) hasShare(u *user) bool {
	return s.hasOwnShare(u) && (s.othersSpent < othersTime || budget.Privileged(u.uid))
}

// hasOwnShare is hasShare for work that is bounded otherwise, whatever other
// users have used.
func (s *Server) hasOwnShare(u *user) bool {
	if u.turn != s.turn {
		u.turn, u.spent = s.turn, 0
	}
	if budget.Privileged(u.uid) {
		return u.spent < rootShare
	}
	return u.spent < share
}

// endStep ends the work for a user, and returns how long it took.
func (s *Server) endStep(u *user) time.Duration {
	now := time.Now()
	took := now.Sub(s.clock)
	s.clock = now
	u.spent += took
	if !budget.Privileged(u.uid) {
		s.othersSpent += took
	}
	s.work[workClients] += took
	s.loopStats.step(took)
	return took
}

// logLines and logText bound what one user can make ttmond write in a minute.
const (
	logLines = 60
	logText  = 4 << 10 // of a dump
)

// logLife logs that a process began or ended to report. Users whose processes do so all
// the time keep half of their lines for what is more telling.
func (s *Server) logLife(uid int, message string, args ...any) {
	if u := s.userOf(uid); u.lines < logLines/2 || s.now.Sub(u.linesSince) > time.Minute || budget.Privileged(uid) {
		s.logFor(u, slog.LevelInfo, message, args...)
	}
}

// logFor logs an event that a user's client caused.
func (s *Server) logFor(u *user, level slog.Level, message string, args ...any) {
	if !s.log.Enabled(context.Background(), level) {
		return
	}
	if s.now.Sub(u.linesSince) > time.Minute {
		u.lines, u.linesSince = 0, s.now
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
