package runtext

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/words"
)

// Leaked says why a check for leaks failed: how much was not freed, what is allowed, and
// the line that has most of it. One that grew step by step comes before all others; where
// none did, it may be weights, and what allows for them is named.
func Leaked(r *runreport.Report, limit uint64) string {
	left := r.Left()
	text := fmt.Sprintf("%s in %s not freed", words.Bytes(left.Bytes), count(left.Blocks, "block"))
	if limit > 0 {
		text += ", limit " + words.Bytes(limit)
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
	if worst == nil || !named([]runs.Place{*worst}) {
		return text
	}
	where, function := describe(worst)
	if function != "" {
		where += " " + function
	}
	if worst.Grew {
		return fmt.Sprintf("%s; %s grew in each quarter of the run, by %s in %s", text, where, words.Bytes(worst.Bytes), of)
	}
	return fmt.Sprintf("%s; %s holds %s in %s (no line was seen to grow; --fail-on-leak=SIZE allows what is kept on purpose)", text, where, words.Bytes(worst.Bytes), of)
}
