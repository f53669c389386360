// Package budget divides the daemon's resources among the users of a host, so
// that no user, by intent or by a runaway program, uses what others need.
//
// allocsock, api and uprobe acquire from budgets before they spend descriptors,
// memory or time on a client, and release after.
package budget

import (
	"cmp"
	"os"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
)

// Limit bounds the use of one resource.
type Limit struct {
	PerUID  int64 // for one ordinary user
	All     int64 // for all users together
	Reserve int64 // the part of All that only root and the daemon's own user may use
}

// Divide returns a limit for a total: an eighth is reserved for root, and one
// user gets at most a quarter.
func Divide(all int64) Limit { return Limit{PerUID: max(all/4, 1), All: all, Reserve: all / 8} }

// Allows reports whether a user who has own may acquire n more where all have
// total.
func (l Limit) Allows(uid int, own, total, n int64) bool { return n <= l.Left(uid, own, total) }

// Left is how much more a user who has own may acquire where all have total; it
// may be negative.
func (l Limit) Left(uid int, own, total int64) int64 {
	if Privileged(uid) {
		return l.All - total
	}
	return min(l.PerUID-own, l.All-l.Reserve-total)
}

// Privileged users are limited only by the total.
func Privileged(uid int) bool { return uid == 0 || uid == ownUID }

var ownUID = os.Geteuid()

// Pool is one resource that users share. Its methods may be called from any
// goroutine.
type Pool struct {
	name     string
	onRefuse func(Refusal)

	mu      sync.Mutex
	limit   Limit
	total   int64
	users   map[int]*account
	refused uint64
}

// account is what one user has of a Pool. It exists while the user has
// something, and for a while after a refusal.
type account struct {
	used       int64
	refused    uint64
	reportedAt time.Time // when a refusal was last reported
}

// Refusal reports, at most once a minute for each user, that a budget is used
// up.
type Refusal struct {
	Budget string // what ran out
	UID    int
	Used   int64  // what the user has
	All    int64  // what all have
	Count  uint64 // refusals of this user so far
}

// reportEvery is how often a user's refusals are reported.
const reportEvery = time.Minute

// maxRefused bounds the accounts that exist only for their refusals.
const maxRefused = 1024

// NewPool returns a budget. onRefuse may be nil; it is called without locks.
func NewPool(name string, limit Limit, onRefuse func(Refusal)) *Pool {
	return &Pool{name: name, limit: limit, onRefuse: onRefuse, users: map[int]*account{}}
}

// Acquire acquires n for a user, or nothing.
func (p *Pool) Acquire(uid int, n int64) bool {
	p.mu.Lock()
	a := p.account(uid)
	if p.limit.Allows(uid, a.used, p.total, n) {
		a.used += n
		p.total += n
		p.mu.Unlock()
		return true
	}
	r, say := p.refuse(uid, a)
	p.mu.Unlock()
	if say && p.onRefuse != nil {
		p.onRefuse(r)
	}
	return false
}

// Try is Acquire for a caller that will retry: a refusal is not counted.
func (p *Pool) Try(uid int, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	used := int64(0)
	if a := p.users[uid]; a != nil {
		used = a.used
	}
	if !p.limit.Allows(uid, used, p.total, n) {
		return false
	}
	p.add(uid, n)
	return true
}

// Fits reports whether n more would be within a user's own limit, whatever the
// others have.
func (p *Pool) Fits(uid int, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.users[uid]
	return Privileged(uid) || a == nil && n <= p.limit.PerUID || a != nil && a.used+n <= p.limit.PerUID
}

// add adds n to a user's account. The caller holds mu.
func (p *Pool) add(uid int, n int64) {
	p.account(uid).used += n
	p.total += n
}

// account finds a user's account, or opens one. The caller holds mu.
func (p *Pool) account(uid int) *account {
	a := p.users[uid]
	if a == nil {
		a = &account{}
		p.users[uid] = a
	}
	return a
}

// Force acquires n regardless of the limit: for what can no longer be refused,
// such as connections that a predecessor handed over.
func (p *Pool) Force(uid int, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(uid, n)
}

// Over reports whether more was forced than a user may have, and counts that as
// a refusal.
func (p *Pool) Over(uid int) bool {
	p.mu.Lock()
	used := int64(0)
	if a := p.users[uid]; a != nil {
		used = a.used
	}
	if p.limit.Left(uid, used, p.total) >= 0 {
		p.mu.Unlock()
		return false
	}
	r, say := p.refuse(uid, p.account(uid))
	p.mu.Unlock()
	if say && p.onRefuse != nil {
		p.onRefuse(r)
	}
	return true
}

// Of returns what a user has.
func (p *Pool) Of(uid int) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.users[uid]; a != nil {
		return a.used
	}
	return 0
}

func (p *Pool) refuse(uid int, a *account) (Refusal, bool) {
	a.refused++
	p.refused++
	now := time.Now()
	say := a.reportedAt.IsZero() || now.Sub(a.reportedAt) >= reportEvery
	if say {
		a.reportedAt = now
	}
	if a.used == 0 && len(p.users) > maxRefused {
		delete(p.users, uid)
	}
	return Refusal{p.name, uid, a.used, p.total, a.refused}, say
}

// Release releases what was acquired.
func (p *Pool) Release(uid int, n int64) {
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.users[uid]
	if a == nil || a.used < n {
		panic("BUG: " + p.name + ": more released than acquired")
	}
	a.used -= n
	p.total -= n
	if a.used == 0 && (a.refused == 0 || len(p.users) > maxRefused) {
		delete(p.users, uid)
	}
}

// Used is what all users have.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// State is a Pool at one moment.
type State struct {
	Name    string `json:"name"`
	Used    int64  `json:"used"`
	All     int64  `json:"limit"`
	PerUID  int64  `json:"limit_per_uid"`
	Reserve int64  `json:"reserve"`
	Refused uint64 `json:"refused"`
	Users   []User `json:"users"` // those who have most, and those who were refused
}

// User is what one user has.
type User struct {
	UID     int    `json:"uid"`
	Used    int64  `json:"used"`
	Refused uint64 `json:"refused"`
}

// maxListed bounds the users that State lists.
const maxListed = 16

// State returns the current figures.
func (p *Pool) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := State{
		Name: p.name, Used: p.total, All: p.limit.All, PerUID: p.limit.PerUID, Reserve: p.limit.Reserve,
		Refused: p.refused, Users: make([]User, 0, min(len(p.users), maxListed)),
	}
	for uid, a := range p.users {
		s.Users = append(s.Users, User{uid, a.used, a.refused})
	}
	s.Users = TopUsers(s.Users)
	return s
}

// TopUsers sorts users by what they have, and keeps the first.
func TopUsers(users []User) []User {
	sorted.By(users, func(a, b *User) int {
		return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.UID, b.UID))
	})
	return users[:min(len(users), maxListed)]
}
