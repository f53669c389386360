package when

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.Local)
	for s, want := range map[string]time.Time{
		"90s":                 now.Add(-90 * time.Second),
		"1.5d":                now.Add(-36 * time.Hour),
		"0s":                  now,
		"2026-11-15T03:00":    time.Date(2026, 11, 15, 3, 0, 0, 0, time.Local),
		"2026-11-14 23:59:58": time.Date(2026, 11, 14, 23, 59, 58, 0, time.Local),
		"2026-11-14":          time.Date(2026, 11, 14, 0, 0, 0, 0, time.Local),
		"today":               time.Date(2026, 11, 15, 0, 0, 0, 0, time.Local),
		"yesterday":           time.Date(2026, 11, 14, 0, 0, 0, 0, time.Local),
		"11:30":               time.Date(2026, 11, 15, 11, 30, 0, 0, time.Local),
		"13:30":               time.Date(2026, 11, 14, 13, 30, 0, 0, time.Local),
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := Ago("--since", s, now); err != nil || !got.Equal(want) {
				t.Errorf("%v %v, want %v", got, err, want)
			}
		})
	}
	for _, s := range []string{"", "d", "-1h", "nand", "99999d", "tomorrow"} {
		if got, err := Ago("--since", s, now); err == nil {
			t.Errorf("%q was read as %v", s, got)
		}
	}
}
