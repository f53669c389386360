package held

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

var begin = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

// see takes in a snapshot in which the process holds so many bytes of DRAM of
// device 0; below 0 it does not run.
func see(l *Line, second, dram int) {
	p := model.Process{}
	if dram >= 0 {
		use := model.DeviceUse{Device: 0}
		use.Memory[model.DRAM] = model.ExactBytes(uint64(dram))
		p.Devices = []model.DeviceUse{use}
	}
	l.See(begin.Add(time.Duration(second)*time.Second), of(&p))
}

// formatPoints writes points as second=bytes.
func formatPoints(list []Point) string {
	var out []string
	for _, p := range list {
		text := "-"
		if d, ok := p.Devices[0]; ok {
			text = fmt.Sprint(d[model.DRAM].Bytes)
		}
		out = append(out, fmt.Sprintf("%v=%s", p.Time.Sub(begin).Seconds(), text))
	}
	return strings.Join(out, " ")
}

func TestPoints(t *testing.T) {
	type at struct{ second, dram int }
	for name, c := range map[string]struct {
		seen     []at
		from, to int
		want     string
	}{
		"nothing changes":       {[]at{{0, 5}, {1, 5}, {2, 5}}, 0, 9, "0=5 2=5"},
		"a peak of one second":  {[]at{{0, 5}, {1, 5}, {2, 90}, {3, 5}, {4, 5}}, 0, 9, "0=5 2=90 3=5 4=5"},
		"from the middle":       {[]at{{0, 5}, {1, 6}, {2, 7}, {3, 8}}, 2, 3, "2=7 3=8"},
		"it begins, and ends":   {[]at{{0, -1}, {1, 5}, {2, 6}, {3, -1}, {4, -1}}, 0, 9, "1=5 2=6 3=-"},
		"no snapshot for a bit": {[]at{{0, 5}, {1, 5}, {60, 5}, {61, 5}}, 0, 99, "0=5 1.001=- 60=5 61=5"},
		"it held before":        {[]at{{0, 5}, {9, 5}, {11, 5}}, 10, 20, "10=5 11=5"},
		"none at all":           {nil, 0, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLine(begin.Add(time.Duration(c.from)*time.Second), begin.Add(time.Duration(c.to)*time.Second))
			for _, x := range c.seen {
				see(l, x.second, x.dram)
			}
			list, step := l.Points(1000)
			if got := formatPoints(list); got != c.want || step != 0 {
				t.Errorf("%q with a step of %v, want %q", got, step, c.want)
			}
		})
	}
}

// Of too many changes no peak is lost.
func TestThin(t *testing.T) {
	l := NewLine(begin, begin.Add(time.Hour))
	for i := range 1000 {
		dram := i % 2
		if i == 515 {
			dram = 999
		}
		see(l, i, dram)
	}
	list, step := l.Points(10)
	if got, want := formatPoints(list), "0=1 499.5=999 599.4=1"; got != want || step != 99900*time.Millisecond {
		t.Errorf("%q with a step of %v, want %q", got, step, want)
	}
}
