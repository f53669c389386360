package export

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/story"
)

// maxFailures bounds the failures that are kept until the end: one that repeats is
// told again, and only then is it known how often it happened.
const maxFailures = 4096

// failed takes in a request for memory that failed.
func (b *builder) failed(r *failure.Record) {
	if r == nil || b.failures[r.ID] == nil && len(b.failures) >= maxFailures {
		return
	}
	b.failures[r.ID] = r
}

// addFailures adds each failure at its time, with its explanation.
func (b *builder) addFailures() {
	var list []*failure.Record
	for _, r := range b.failures {
		list = append(list, r)
	}
	slices.SortFunc(list, func(x, y *failure.Record) int {
		return cmp.Or(x.Time.Compare(y.Time), strings.Compare(x.ID, y.ID))
	})
	for _, r := range list {
		b.to.Instant(&Instant{
			Group: processGroup(r.Process.PID, r.Process.Name), Track: "failed allocations", Name: story.Event(r, true), NS: r.Time.UnixNano(), Args: failureArgs(r),
		})
	}
}

// failureArgs are the details of a failure.
func failureArgs(r *failure.Record) []Arg {
	args := []Arg{{"id", r.ID}, {"verdict", story.Verdict(r)}, {"asked for", story.Requested(r)}, {"free", story.Free(r)}, {"where", story.Where(r)}}
	if line, function := story.Requester(r); line != "" {
		args = append(args, Arg{"line", strings.TrimSpace(line + " " + function)})
	}
	for _, h := range story.Holders(r) {
		if args = append(args, Arg{"held by", story.HolderText(&h)}); len(args) >= maxFailureArgs {
			break
		}
	}
	for _, s := range story.Fixes(r, r.Time) {
		args = append(args, Arg{"would have fitted", s})
	}
	return args
}

// maxFailureArgs bounds the lines that are listed.
const maxFailureArgs = 16
