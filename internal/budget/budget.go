// Package budget shares out what the daemon has among the users of a host, so
// that no user, by intent or by a program gone wild, takes what others need.
//
// It stands beside the data flow: allocsock and api take from budgets before
// they spend descriptors, memory or time on a client, and give back after.
package budget

import (
	"cmp"
	"os"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/sorted"
)

// Limit is how much of one thing there is.
type Limit struct {
	PerUID  int64 // what one ordinary user may take
	All     int64 // what all may take together
	Reserve int64 // the part of All that is left for root and the daemon's own user
}

// Divide makes a limit out of all there is: an eighth is kept for root, and
// one user gets at most a quarter.
func Divide(all int64) Limit { return Limit{PerUID: max(all/4, 1), All: all, Reserve: all / 8} }

// Allows reports whether a user who has own may take n more where all have total.
func (l Limit) Allows(uid int, own, total, n int64) bool { return n <= l.Left(uid, own, total) }

// Left is how much more a user may take who has own where all have total; it may
// be negative.
func (l Limit) Left(uid int, own, total int64) int64 {
	if Privileged(uid) {
		return l.All - total
	}
	return min(l.PerUID-own, l.All-l.Reserve-total)
}

// Privileged users are bound only by what there is in all.
func Privileged(uid int) bool { return uid == 0 || uid == ownUID }

var ownUID = os.Geteuid()

// Pool is one thing that is shared out. Its methods may be called from any
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

// account is what one user has of a Pool. It is there while the user has
// something, and for a while after a refusal.
type account struct {
	used    int64
	refused uint64
	said    time.Time // when a refusal was last reported
}

// Refusal is what is reported, at most once a minute for each user, when a
// budget is used up.
type Refusal struct {
	Budget string // what ran out
	UID    int
	Used   int64  // what the user has
	All    int64  // what all have
	Count  uint64 // refusals of this user so far
}

// sayEvery is how often a user's refusals are reported.
const sayEvery = time.Minute

// maxRefused bounds the users who are remembered only for their refusals.
const maxRefused = 1024

// NewPool returns a budget. onRefuse may be nil; it is called without locks.
func NewPool(name string, limit Limit, onRefuse func(Refusal)) *Pool {
	return &Pool{name: name, limit: limit, onRefuse: onRefuse, users: map[int]*account{}}
}

// Take takes n for a user, or nothing.
func (p *Pool) Take(uid int, n int64) bool {
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

// Try is Take for a caller that will try again: a refusal is not counted.
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
	p.take(uid, n)
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

// take books n. The caller holds mu.
func (p *Pool) take(uid int, n int64) {
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

// Force takes n whatever the limit: for what cannot be refused any more, such
// as connections that a predecessor handed over.
func (p *Pool) Force(uid int, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(uid, n)
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

// Of is what a user has.
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
	say := a.said.IsZero() || now.Sub(a.said) >= sayEvery
	if say {
		a.said = now
	}
	if a.used == 0 && len(p.users) > maxRefused {
		delete(p.users, uid)
	}
	return Refusal{p.name, uid, a.used, p.total, a.refused}, say
}

// Give gives back what was taken.
func (p *Pool) Give(uid int, n int64) {
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.users[uid]
	if a == nil || a.used < n {
		panic("BUG: " + p.name + ": more given back than was taken")
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

// State returns figures for people.
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
