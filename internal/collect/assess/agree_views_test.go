package assess_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/event"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/stream"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/pagejson"
	"github.com/ttmon/ttmon/internal/view/prom"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/fleet"
)

// agreeStream: dmon has the state of every device, and what throttles it.
func agreeStream(t *testing.T, s *model.Snapshot, a *assess.Assessment) {
	st, _, ok := text.NewDmon("ev", text.Options{})
	if !ok {
		t.Fatal("dmon has no groups e and v")
	}
	out := string(st.AppendDmon(nil, s))
	for i := range s.Devices {
		d := &s.Devices[i]
		is := a.Device(d.Index)
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^ +%d .*$`, d.Index)).FindString(out)
		if !slices.Contains(strings.Fields(row), string(is.Kind)) {
			t.Errorf("dmon does not say that device %d is %s: %s", d.Index, is.Kind, row)
		}
		c, throttled := a.Find(d.Index, model.ConditionThrottled)
		if says := strings.Contains(row, string(c.Cause)); throttled && !says {
			t.Errorf("dmon does not say that device %d is throttled by %s: %s", d.Index, c.Cause, row)
		}
	}
}

// agreeOrder: wherever trouble is listed, it is in the judge's order.
func agreeOrder(t *testing.T, s *model.Snapshot, a *assess.Assessment) {
	var want []string
	for _, r := range a.Rows() {
		for _, c := range r.Conditions {
			want = append(want, words.Kind(c.Kind))
		}
	}
	var page []string
	for _, x := range pagejson.Of(s).Troubles {
		page = append(page, words.Kind(model.ConditionKind(x.Kind)))
	}
	if !slices.Equal(page, want) {
		t.Errorf("the page lists %q, want %q", page, want)
	}
	table := string(text.AppendTable(nil, s, text.Options{Options: lines.Options{Width: 200}}))
	at := 0
	for i, lines := range words.TroubleLines(words.Troubles(s), 199) {
		line := lines[0]
		next := strings.Index(table[at:], line)
		if i < 8 && next < 0 {
			t.Errorf("smi does not have %q after the row before it", line)
			return
		}
		at += max(next, 0)
	}
}

// agreeEvents: what is a state is an event when it begins and when it is over.
func agreeEvents(t *testing.T, s *model.Snapshot, a *assess.Assessment) {
	well := *s
	well.Assessed, well.Conditions, well.Alerts = true, nil, nil
	well.Devices = slices.Clone(s.Devices)
	for i := range well.Devices {
		well.Devices[i].State, well.Devices[i].StateReason = model.StateOK, model.StateReason{}
	}
	var d event.Detector
	d.Next(&well)
	begun := d.Next(s)
	over := d.Next(&well)
	for i := range s.Devices {
		is := a.Device(s.Devices[i].Index)
		if is.Kind == model.ConditionOK || is.Kind == model.ConditionLinkDown || is.Kind == model.ConditionWeakLink { // a link has events of its own
			continue
		}
		about := func(e model.Event) bool {
			return slices.Contains(e.Devices, s.Devices[i].BusID) && e.Kind != model.EventTripped
		}
		if !slices.ContainsFunc(begun, about) || !slices.ContainsFunc(over, about) {
			t.Errorf("that device %d is %s: events %v, and when it is over %v", s.Devices[i].Index, is.Kind, begun, over)
		}
	}
}

// agreeProcesses: smi, top and the page say the same of what a process holds.
func agreeProcesses(t *testing.T, s *model.Snapshot) {
	table, page := string(text.AppendTable(nil, s, text.Options{Options: lines.Options{Width: 200}})), pagejson.Of(s)
	shown := screen(t, s, 200, 60, "grid")
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.State != model.Running {
			continue
		}
		held := p.Held(model.DRAM)
		want := words.FigureOr(held, p.Tracking())
		if got := page.Processes[i].Values[model.DRAM.String()].Text; got != want {
			t.Errorf("the page says %q of process %d, want %q", got, p.PID, want)
		}
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^.* %d .*$`, p.PID))
		for view, text := range map[string]string{"smi": table, "top": shown} {
			if row := line.FindString(text); !strings.Contains(strings.Join(strings.Fields(row), " "), want) {
				t.Errorf("%s does not say %q of process %d: %q", view, want, p.PID, row)
			}
		}
	}
}

// fleetHost is a host as an engine would aggregate its series.
func fleetHost(name string, s *model.Snapshot) sums.Host {
	h := sums.NewHost(name)
	w := prom.NewWalker(prom.Options{})
	w.Observe(s)
	w.Walk(s, &stream.Self{}, func(f *prom.Family, labels prom.Labels, v float64) {
		if f.Name == "tenstorrent_devices_in_condition" {
			kind := regexp.MustCompile(`condition="(\w+)"`).FindStringSubmatch(string(labels.AppendText(nil)))[1]
			h.Chips[model.ConditionKind(kind)] += int(v)
		}
	})
	return h
}

// TestFleetAgrees: a fleet of all the hosts in trouble counts every device in the
// state that its own host has it in, puts the worst host first, and says the worst
// in its first line.
func TestFleetAgrees(t *testing.T) {
	var f sums.Fleet
	want := assess.Tally{}
	for name, s := range troubled() {
		f.Hosts = append(f.Hosts, fleetHost(name, s))
		for _, n := range assess.Of(s).Counts() {
			want[n.Kind] += n.N
		}
	}
	sums.Sort(f.Hosts)
	for i := range f.Hosts[1:] {
		if a, b := &f.Hosts[i], &f.Hosts[i+1]; a.Chips.Compare(b.Chips) > 0 {
			t.Errorf("%s stands before %s", a.Name, b.Name)
		}
	}
	first, _, _ := strings.Cut(string(text.AppendFleet(nil, f, time.Now(), 50)), "\n")
	s := fleet.New(fleet.Options{Interval: time.Second})
	s.Update(tui.Resize{W: 200, H: 50})
	s.Update(fleet.Answer{Fleet: &f, At: time.Unix(1_800_000_000, 0)})
	g := cells.NewGrid(200, 50)
	s.Draw(g)
	title, _, _ := strings.Cut(g.String(), "\n")
	for _, n := range want.Counts() {
		count := fmt.Sprintf("%d %s", n.N, words.Kind(n.Kind))
		if !strings.Contains(first, count) || !strings.Contains(title, count) {
			t.Errorf("no %q in the first lines of fleet:\n%s\n%s", count, first, title)
		}
	}
}

// TestWithinTwoSamples: whatever is wrong with a host is known after its second
// sample at the latest, and over after the second without it.
func TestWithinTwoSamples(t *testing.T) {
	for name, s := range troubled() {
		t.Run(name, func(t *testing.T) {
			want := assess.Of(s).Conditions()
			var j assess.Judge
			at := s.Time
			sample := func(s *model.Snapshot) *model.Snapshot {
				now := *s
				at = at.Add(time.Second)
				now.Time, now.Assessed, now.Conditions = at, false, nil
				j.Assess(&now)
				return &now
			}
			well := busy()
			well.Devices = well.Devices[:min(len(well.Devices), len(s.Devices))]
			sample(well)
			sample(s)
			got := sample(s).Conditions
			kinds := func(list []model.Condition) (out []string) {
				for _, c := range list {
					out = append(out, fmt.Sprint(c.Device, c.Kind))
				}
				return out
			}
			if !slices.Equal(kinds(got), kinds(want)) {
				t.Errorf("after two samples %v, want %v", kinds(got), kinds(want))
			}
			sample(well)
			for _, c := range sample(well).Conditions {
				if c.Level >= model.Warning {
					t.Errorf("after two samples without it there is still %s of device %d", c.Kind, c.Device)
				}
			}
		})
	}
}
