package runwords

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/runs"
)

// TestEndAfterFailure: a failed allocation is the cause of an end that follows at
// once; of a later one it is only what came before.
func TestEndAfterFailure(t *testing.T) {
	at := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after time.Duration
		code  int
		count uint64
		want  string
	}{
		{time.Second, 1, 1, "out of L1, exit 1"},
		{25 * time.Second, 1, 1, "exit 1, 25s after an allocation failed"},
		{25 * time.Second, 1, 3, "exit 1, 25s after the last of ≥3 failed allocations"},
		{time.Minute, 1, 3, "exit 1, ≥3 failed allocations"},
		{time.Second, 0, 1, "exit 0, ≥1 failed allocation"},
	} {
		t.Run(c.want, func(t *testing.T) {
			r := runs.Run{
				End:      runs.Ending{Kind: runs.Exited, Code: &c.code, At: at.Add(c.after)},
				Failures: &runs.Failures{Count: c.count, Last: at, Pool: "l1"},
			}
			r.Blame()
			if got := End(&r); got != c.want {
				t.Errorf("%v after %d: %q instead of %q", c.after, c.count, got, c.want)
			}
		})
	}
}
