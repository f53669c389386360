package runwords

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/words"
)

// Present completes runs of an answer with their words.
func Present(list []runs.Run) {
	for i := range list {
		x := &list[i]
		x.End.Text, x.Failed = End(x), x.End.Failed()
		for k := range x.Left {
			x.Left[k].Text = Left(&runs.Run{Left: x.Left[k : k+1]})
		}
	}
}

// JobEnd says how the runs of a job ended: that of one, or how many failed.
func JobEnd(j *runs.JobGroup) string {
	switch n := len(j.Runs); {
	case n == 1:
		return End(&runs.Run{End: j.Runs[0].End})
	case j.Failed > 0:
		return fmt.Sprintf("%d of %d runs failed", j.Failed, n)
	case j.Running:
		return fmt.Sprintf("running, %d runs", n)
	}
	return words.Count(len(j.Runs), "run")
}

// Trouble says for how long a device was in which trouble.
func Trouble(d *runs.Device) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(d.Trouble)) {
		list = append(list, words.Escape(strings.ReplaceAll(string(k), "_", " "))+" "+seconds(d.Trouble[k]))
	}
	if d.Resets > 0 {
		list = append(list, fmt.Sprintf("reset %d×", d.Resets))
	}
	return strings.Join(list, ", ")
}
