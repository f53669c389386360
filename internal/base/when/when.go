// Package when reads times as people write them: a length of time (90s, 7d), a
// time ago, a moment (2026-11-15T03:00).
package when

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
)

// Span reads a length of time: 90s, 2h, -30s, 7d. time.ParseDuration has no days.
func Span(s string) (time.Duration, bool) {
	if rest, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseFloat(rest, 64); err == nil && math.Abs(n) < 36500 {
			return time.Duration(n * 24 * float64(time.Hour)), true
		}
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// layouts are the ways to write a moment.
var layouts = [...]string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", clockLayout,
}

// clockLayout has no date: it means the last time that a clock showed it.
const clockLayout = "15:04"

// parseDay reads today and yesterday as the start of that day.
func parseDay(s string, now time.Time) (time.Time, bool) {
	daysAgo, ok := map[string]int{"today": 0, "yesterday": 1}[s]
	y, m, d := now.Local().Date()
	return time.Date(y, m, d-daysAgo, 0, 0, 0, 0, time.Local), ok
}

// Ago reads an age or a moment. Errors begin with the name of the flag.
func Ago(flag, s string, now time.Time) (time.Time, error) {
	if d, ok := Span(s); ok && d >= 0 {
		return now.Add(-d), nil
	}
	if t, ok := parseDay(s, now); ok {
		return t, nil
	}
	for _, layout := range layouts {
		t, err := time.ParseInLocation(layout, s, time.Local)
		if err != nil {
			continue
		}
		if layout == clockLayout {
			y, m, d := now.Local().Date()
			if t = time.Date(y, m, d, t.Hour(), t.Minute(), 0, 0, time.Local); t.After(now) {
				t = t.AddDate(0, 0, -1)
			}
		}
		return t, nil
	}
	return now, exit.Usage("%s: %q is not a time: use an age (2h, 7d), today, yesterday or a date (2026-11-15T03:00)", flag, s)
}
