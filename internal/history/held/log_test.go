package held

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

var begin = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

// host is a snapshot in which process 7 holds so many bytes of DRAM of device 0;
// below 0 it does not run.
func host(second int, dram int) *model.Snapshot {
	s := &model.Snapshot{Time: begin.Add(time.Duration(second) * time.Second)}
	if dram >= 0 {
		use := model.DeviceUse{Device: 0}
		use.Memory[model.DRAM] = model.ExactBytes(uint64(dram))
		s.Processes = []model.Process{{PID: 7, StartTicks: 1, Devices: []model.DeviceUse{use}}}
	}
	return s
}

// told writes points as second=bytes.
func told(list []Point) string {
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
		"the clock goes back":   {[]at{{50, 5}, {51, 6}, {20, 7}, {21, 8}}, 0, 99, "20=7 21=8"},
		"before all":            {[]at{{10, 5}, {11, 5}}, 0, 5, ""},
	} {
		var l Log
		for _, x := range c.seen {
			l.Observe(host(x.second, x.dram))
		}
		sec := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Second) }
		list, _, step := l.Points(7, 1, sec(c.from), sec(c.to), 1000)
		if got := told(list); got != c.want || step != 0 {
			t.Errorf("%s: %q with a step of %v, want %q", name, got, step, c.want)
		}
		if list, _, _ := l.Points(7, 2, sec(c.from), sec(c.to), 1000); len(list) > 0 {
			t.Errorf("%s: another process of that pid is told the same: %q", name, told(list))
		}
	}
}

// Of too many changes no peak is lost.
func TestThin(t *testing.T) {
	var l Log
	for i := range 1000 {
		dram := i % 2
		if i == 515 {
			dram = 999
		}
		l.Observe(host(i, dram))
	}
	list, _, step := l.Points(7, 0, begin, begin.Add(time.Hour), 10)
	if got, want := told(list), "0=1 499.5=999 599.4=1"; got != want || step != 99900*time.Millisecond {
		t.Errorf("%q with a step of %v, want %q", got, step, want)
	}
}

// What is older than an hour, and what is too much, is forgotten, and it is told
// from when on all is known.
func TestForget(t *testing.T) {
	var l Log
	for i := range 2 * 3600 {
		l.Observe(host(i, i/1800))
	}
	list, since, _ := l.Points(7, 1, begin, begin.Add(3*time.Hour), 1000)
	if got, want := told(list), "3599=1 3600=2 5400=3 7199=3"; got != want || !since.Equal(begin.Add(3599*time.Second)) {
		t.Errorf("%q since %v, want %q", got, since, want)
	}
	for i := range 2 * 3600 {
		l.Observe(host(7200+i, -1))
	}
	if len(l.series) > 0 || len(l.changes) > 0 {
		t.Errorf("%d processes and %d changes are kept of a process that ended long ago", len(l.series), len(l.changes))
	}
	l = Log{}
	for i := range most + 100 {
		s := host(0, i)
		s.Time = begin.Add(time.Duration(i) * time.Millisecond)
		l.Observe(s)
	}
	if _, since, _ := l.Points(7, 1, begin, begin.Add(time.Hour), 10); len(l.changes) != most || !since.Equal(begin.Add(99*time.Millisecond)) {
		t.Errorf("%d changes are kept, since %v", len(l.changes), since)
	}
}

// Of a process of which nothing is known nothing is kept when it has ended.
func TestForgetUnknown(t *testing.T) {
	var l Log
	for i := range 100 {
		s := host(i, -1)
		s.Processes = []model.Process{{PID: 100 + i, StartTicks: 1, Devices: []model.DeviceUse{{Device: 0}}}}
		l.Observe(s)
	}
	if n := len(l.series); n != 1 {
		t.Errorf("%d processes are kept, one runs", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	s := &model.Snapshot{Time: begin}
	for pid := range 64 {
		p := model.Process{PID: pid + 1}
		for d := range 32 {
			p.Devices = append(p.Devices, model.DeviceUse{Device: d})
			p.Devices[d].Memory[model.DRAM] = model.ExactBytes(uint64(pid))
		}
		s.Processes = append(s.Processes, p)
	}
	var l Log
	for b.Loop() {
		s.Time = s.Time.Add(time.Second)
		l.Observe(s)
	}
}
