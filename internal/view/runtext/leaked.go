package runtext

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Leaked says why a check for leaks failed: how much was not freed, what is allowed, and
// the line that has most of it. One that grew step by step comes before all others.
func Leaked(r *runreport.Report, limit runreport.LeakLimit) string {
	left := r.Left()
	text := fmt.Sprintf("%s in %s not freed", words.Bytes(left.Bytes), count(left.Blocks, "block"))
	if limit.Bytes > 0 {
		text += ", limit " + words.Bytes(limit.Bytes)
	}
	var worst *runs.Place
	var of string
	for d, c := range r.Run.Chips() {
		for _, pool := range model.Pools() {
			p := c.Pools[pool.String()]
			if p.Blocks == nil {
				continue
			}
			for _, q := range runs.ByLine(p.Blocks.LeftBy) {
				if worst == nil || q.Grew && !worst.Grew || q.Grew == worst.Grew && q.Bytes > worst.Bytes {
					worst, of = &q, words.PoolName(pool)+" of "+chipName(chipOf{d, c})
				}
			}
		}
	}
	if worst == nil {
		return text
	}
	where, function := describe(worst)
	where = strings.TrimSpace(where + " " + function)
	switch unnamed := !named([]runs.Place{*worst}); {
	case unnamed && worst.Grew:
		return text + "; there is more in each quarter of the run (--stacks names the line)"
	case unnamed:
		return text
	case worst.Grew:
		grew := fmt.Sprintf("%s grew in each quarter of the run: %s%s, %s in %s", where, count(worst.Blocks, "block"), each(worst), words.Bytes(worst.Bytes), of)
		if limit.Kept {
			return "leak: " + grew
		}
		return text + "; " + grew
	}
	return fmt.Sprintf("%s; %s holds %s in %s", text, where, words.Bytes(worst.Bytes), of)
}

// each is how much a line grew by at a time.
func each(q *runs.Place) string {
	return ", +" + words.Bytes(q.Bytes/q.Blocks) + " each"
}
