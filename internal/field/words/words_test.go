package words_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		want string
	}{
		{0, "0 B"},
		{1, "1 B"},
		{999, "999 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{410 * kib, "410 KiB"},
		{1023 * kib, "1023 KiB"},
		{1023*kib + 511, "1023 KiB"},
		{1023*kib + 512, "1.0 MiB"}, // never "1024 KiB"
		{1363148, "1.3 MiB"},
		{10*mib - 1, "10 MiB"},
		{38 * mib, "38 MiB"},
		{10952166604, "10.2 GiB"},
		{100*gib - 1, "100 GiB"},
		{99 * gib, "99.0 GiB"},
		{1 << 40, "1.0 TiB"},
		{^uint64(0), "16.0 EiB"},
	} {
		t.Run(fmt.Sprint(c.n), func(t *testing.T) {
			if got := words.Bytes(c.n); got != c.want {
				t.Errorf("Bytes(%d) = %q, want %q", c.n, got, c.want)
			}
		})
	}
}

func TestUsedOf(t *testing.T) {
	for _, c := range []struct {
		used, total uint64
		want        string
	}{
		{0, 24 * gib, "0/24.0 GiB"},
		{1, 24 * gib, "<0.1/24.0 GiB"},
		{10952166604, 24 * gib, "10.2/24.0 GiB"},
		{384 * gib, 1020 * gib, "384/1020 GiB"},
		{38 * mib, 91750400, "38/88 MiB"},
		{25 * gib, 24 * gib, "25.0/24.0 GiB"},
		{0, 0, "0/0 B"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := words.UsedOf(c.used, c.total); got != c.want {
				t.Errorf("UsedOf(%d, %d) = %q, want %q", c.used, c.total, got, c.want)
			}
		})
	}
}

// Whatever the value, a column form takes the same number of cells.
func TestColumnsNeverJump(t *testing.T) {
	for shift := range 64 {
		for _, d := range []uint64{0, 1, ^uint64(0)} {
			n := uint64(1)<<shift + d
			if got := words.BytesColumn(n); words.Width(got) != words.BytesWidth {
				t.Errorf("BytesColumn(%d) = %q takes %d cells", n, got, words.Width(got))
			}
			if got := words.Rate(float64(n)); words.Width(got) > words.RateWidth {
				t.Errorf("Rate(%d) = %q takes %d cells", n, got, words.Width(got))
			}
		}
	}
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		d          time.Duration
		want, span string
	}{
		{-time.Second, "0s", "0 s"},
		{41*time.Second + 900*time.Millisecond, "41s", "41 s"},
		{3*time.Minute + 7*time.Second, "3m07s", "3 min"},
		{59*time.Minute + 59*time.Second, "59m59s", "59 min"},
		{2*time.Hour + 14*time.Minute, "2h14m", "2 h"},
		{76 * time.Hour, "3d04h", "3 days"},
		{412 * 24 * time.Hour, "412d", "412 days"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := words.Duration(c.d); got != c.want || len(got) > words.DurationWidth {
				t.Errorf("Duration(%v) = %q, want %q", c.d, got, c.want)
			}
			if got := words.Span(c.d); got != c.span {
				t.Errorf("Span(%v) = %q, want %q", c.d, got, c.span)
			}
		})
	}
}

func TestTemperature(t *testing.T) {
	for _, c := range []struct {
		c    float64
		want string
	}{
		{52.4, "52 °C"},
		{-0.3, "0 °C"},
		{-4.5, "-5 °C"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := words.Temperature(c.c); got != c.want {
				t.Errorf("Temperature(%v) = %q, want %q", c.c, got, c.want)
			}
		})
	}
}

// Every status that says something has a word of its own, and it fits its column.
func TestMissing(t *testing.T) {
	seen := map[string]bool{}
	for s := model.Absent; s <= model.Pending; s++ {
		if s == model.Known {
			continue
		}
		w := words.Missing(s)
		if w == "" || words.Width(w) > 7 {
			t.Errorf("Missing(%v) = %q", s, w)
		}
		if seen[w] && w != words.Nothing {
			t.Errorf("Missing(%v) = %q, which another status says too", s, w)
		}
		seen[w] = true
	}
	if got := words.Reading(model.Value(61.4), words.Watts); got != "61 W" {
		t.Errorf("Reading(known) = %q", got)
	}
	if got := words.Reading(model.Missing[float64](model.Denied, ""), words.Watts); got != "denied" {
		t.Errorf("Reading(denied) = %q", got)
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		width int
		want  string
	}{
		{0, 4, "░░░░"},
		{0.001, 4, "▓░░░"},
		{0.5, 4, "▓▓░░"},
		{0.999, 4, "▓▓▓░"},
		{1, 4, "▓▓▓▓"},
		{1.3, 4, "▓▓▓▓"},
		{-1, 4, "░░░░"},
		{0.5, 0, ""},
		{0.6, 1, "▓"},
	} {
		t.Run(fmt.Sprintf("%v of %d", c.ratio, c.width), func(t *testing.T) {
			if got := words.Bar(c.ratio, c.width); got != c.want {
				t.Errorf("Bar(%v, %d) = %q, want %q", c.ratio, c.width, got, c.want)
			}
		})
	}
}
