package repeat

import (
	"strings"
	"testing"
)

func TestFrame(t *testing.T) {
	got := string(frame([]byte("a\nb\nc\nd\n"), 3))
	want := "\x1b[?2026h\x1b[Ha\x1b[K\n … 3 more lines need a taller terminal (ttmon top scrolls)\x1b[K\n\x1b[J\x1b[?2026l"
	if got != want {
		t.Errorf("%q", got)
	}
	if got := string(frame([]byte("a\n"), 0)); !strings.Contains(got, "a\x1b[K\n") {
		t.Errorf("without a size: %q", got)
	}
}
