package gather

import (
	"maps"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
)

// What one user may report: ten failures at once, then one a minute. Events and
// log lines are everybody's, and a program decides how often it fails.
const (
	reportCost  = time.Second // of the user's Meter
	reportBurst = 10
	reportPart  = 60 // one reportCost a minute is forgotten
	// maxReporters bounds the users that are told apart; the others share one Meter.
	maxReporters = 1024
	otherUsers   = -2
)

// reported is what a user has reported lately.
type reported struct {
	budget.Meter
	leftOut uint64 // failures that were not reported since
}

// reportBudget bounds what each user reports.
type reportBudget map[int]*reported

// allow reports whether one more failure of a user may be reported.
func (a reportBudget) allow(uid int, now time.Time) bool {
	u := a[uid]
	if u == nil {
		if len(a) >= maxReporters && uid != otherUsers {
			return a.allow(otherUsers, now)
		}
		u = &reported{Meter: budget.Meter{Part: reportPart}}
		a[uid] = u
	}
	if !u.free(now) {
		u.leftOut++
		return false
	}
	u.Add(reportCost, now)
	return true
}

func (u *reported) free(now time.Time) bool {
	return u.Spent(now)+reportCost <= reportBurst*reportCost
}

// flush reports how many failures of each user were left out, once it may report
// again, and forgets users that have reported nothing for long.
func (a reportBudget) flush(now time.Time, say func(uid int, n uint64)) {
	for uid, u := range a {
		if u.leftOut > 0 && u.free(now) {
			u.Add(reportCost, now)
			say(uid, u.leftOut)
			u.leftOut = 0
		}
	}
	maps.DeleteFunc(a, func(_ int, u *reported) bool { return u.leftOut == 0 && u.Spent(now) == 0 })
}
