package api

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ttmon/ttmon/internal/model/params"
)

// asked reads the parameters of a call; who gives wrong ones has been sent why.
func asked(w http.ResponseWriter, r *http.Request, question any) bool {
	err := params.Parse(r.URL.Query(), question)
	if err != nil {
		Fail(w, http.StatusBadRequest, "%v", err)
	}
	return err == nil
}

// ParseTime reads a moment of a query; the zero time if it was not given.
func ParseTime(v url.Values, name string) (t time.Time, err error) {
	text := v.Get(name)
	if text == "" {
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return t, fmt.Errorf("%s: %q is not a time like 2026-11-15T08:30:00Z", name, text)
	}
	return t, nil
}

// ParseMoment reads the moment whose snapshot is asked for. Browsers cut times to
// milliseconds, so a whole one stands for all of it: the time of an event finds the
// snapshot that shows it.
func ParseMoment(v url.Values) (time.Time, error) {
	t, err := ParseTime(v, "at")
	if !t.IsZero() && t.Nanosecond()%int(time.Millisecond) == 0 {
		t = t.Add(time.Millisecond - 1)
	}
	return t, err
}

// ParsePeriod reads start and end of a query; where they were not given it is the
// last hour.
func ParsePeriod(v url.Values, now time.Time) (start, end time.Time, err error) {
	if end, err = ParseTime(v, "end"); err != nil {
		return start, end, err
	}
	if end.IsZero() {
		end = now
	}
	if start, err = ParseTime(v, "start"); err != nil {
		return start, end, err
	}
	if start.IsZero() {
		start = end.Add(-time.Hour)
	}
	if !start.Before(end) {
		return start, end, fmt.Errorf("start is not before end")
	}
	return start, end, nil
}
