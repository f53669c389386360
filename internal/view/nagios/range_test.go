package nagios

import (
	"fmt"
	"math"
	"testing"
)

func TestRange(t *testing.T) {
	for _, c := range []struct {
		text         string
		alerts, fine []float64
		scaled       string // by 2
	}{
		{"10", []float64{-1, 10.5}, []float64{0, 10}, "20"},
		{"10:", []float64{9.9, -3}, []float64{10, 1e9}, "20:"},
		{"~:10", []float64{11}, []float64{-1e9, 10}, "~:20"},
		{"10:20", []float64{9, 21}, []float64{10, 20}, "20:40"},
		{"@10:20", []float64{10, 15, 20}, []float64{9, 21}, "@20:40"},
		{"@0:10", []float64{0, 10}, []float64{-1, 11}, "@0:20"},
		{"-5:5", []float64{-6, 6}, []float64{-5, 0}, "-10:10"},
		{"0:", []float64{-1}, []float64{0}, "0:"},
	} {
		t.Run(c.text, func(t *testing.T) {
			r, err := ParseRange(c.text)
			if err != nil {
				t.Error(err)
				return
			}
			for _, v := range c.alerts {
				if !r.Alerts(v) {
					t.Errorf("%s does not alert of %v", c.text, v)
				}
			}
			for _, v := range c.fine {
				if r.Alerts(v) {
					t.Errorf("%s alerts of %v", c.text, v)
				}
			}
			if got := r.scaled(2); got != c.scaled {
				t.Errorf("%s doubled is %s, want %s", c.text, got, c.scaled)
			}
		})
	}
	for _, bad := range []string{"", ":", "a", "1:b", "20:10", "@", "~", "nan", "1:inf", "1:2:3"} {
		if r, err := ParseRange(bad); err == nil {
			t.Errorf("%q is accepted as %+v", bad, r)
		}
	}
}

// What is read means the same when it is written in another unit and read again.
func FuzzParseRange(f *testing.F) {
	for _, s := range []string{"10", "10:", "~:10", "10:20", "@10:20", "-1:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRange(s)
		if err != nil {
			return
		}
		again, err := ParseRange(r.scaled(1024))
		if math.IsInf(r.Low*1024, 0) && !math.IsInf(r.Low, 0) || math.IsInf(r.High*1024, 0) && !math.IsInf(r.High, 0) {
			return
		}
		if err != nil || again.Low != r.Low*1024 || again.High != r.High*1024 || again.Inside != r.Inside {
			t.Errorf("%q scaled is %q: %+v, %v", s, r.scaled(1024), again, err)
		}
	})
}

// A lower bound decides where every higher value would be judged as it is.
func TestAlertsFrom(t *testing.T) {
	for _, c := range []struct {
		text         string
		v            float64
		alerts, sure bool
	}{
		{"10", 5, false, false},
		{"10", 11, true, true},
		{"10:", 5, true, false},
		{"10:", 11, false, true},
		{"10:20", 15, false, false},
		{"10:20", 25, true, true},
		{"@10:20", 5, false, false},
		{"@10:20", 15, true, false},
		{"@10:20", 25, false, true},
		{"@10:", 15, true, true},
	} {
		t.Run(fmt.Sprintf("%s from %v", c.text, c.v), func(t *testing.T) {
			r, err := ParseRange(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if alerts, sure := r.AlertsFrom(c.v); alerts != c.alerts || sure != c.sure {
				t.Errorf("%s from %v: %v, sure %v", c.text, c.v, alerts, sure)
			}
		})
	}
}
