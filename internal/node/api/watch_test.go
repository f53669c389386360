package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// TestLateSnapshot: a snapshot that is older than the client wants it says so, and no
// figure of it is exact.
func TestLateSnapshot(t *testing.T) {
	for name, makes := range map[string]bool{"in time": true, "late": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := time.Now()
			snap := sample.Four()
			snap.Devices[0].Memory.Pools[model.DRAM].Used = model.ExactBytes(1 << 30)
			feed := new(Feed)
			h := serve(t, func(o *Options) {
				o.Feed = feed
				o.Interval = func() time.Duration { return time.Minute }
				o.Demand = func() {
					if makes {
						feed.PublishSample(snap, Sample{Began: time.Now(), Extra: true})
					}
				}
			})
			feed.PublishSample(snap, Sample{Began: old})
			for target, wantLate := range map[string]bool{"": false, "?interval=0s": !makes, "?interval=1h": false} {
				r, err := h.client.Get("http://ttmond/v1/snapshot" + target)
				if err != nil {
					t.Fatal(err)
				}
				r.Body.Close()
				if got := r.Header.Get(apitype.LateHeader) != ""; got != wantLate || r.StatusCode != http.StatusOK {
					t.Errorf("%q: late %v, status %d", target, got, r.StatusCode)
				}
			}
			bound := map[bool]string{true: "exact", false: "unsure"}[makes]
			if _, body := h.get("/v1/memory?device=0"); !strings.Contains(body, " all - dram 1073741824 "+bound+" ") {
				t.Errorf("not %s:\n%s", bound, body)
			}
		})
	}
}
