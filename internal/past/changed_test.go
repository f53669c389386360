package past

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/past/history/changed"
)

// Who asks what changed while another is answered is told to ask again, which the page does
// by itself; an engine that fails is another matter.
func TestChangedBusy(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"another is answered": {changed.ErrBusy, 429},
		"it fails":            {errors.New("reading the history: broken"), 503},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, Memory{Changed: func(context.Context, time.Time, time.Time) (*changed.Answer, error) { return nil, c.err }})
			if status, body := h.get("/v1/changed"); status != c.want || !strings.Contains(body, c.err.Error()) {
				t.Errorf("status %d, want %d: %s", status, c.want, body)
			}
		})
	}
}
