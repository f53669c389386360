package assess_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/stream"
	"github.com/ttmon/ttmon/internal/past/kube"
	"github.com/ttmon/ttmon/internal/view/doctor"
	"github.com/ttmon/ttmon/internal/view/facts"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/nagios"
	"github.com/ttmon/ttmon/internal/view/pagejson"
	"github.com/ttmon/ttmon/internal/view/prom"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/mem"
	"github.com/ttmon/ttmon/internal/view/tui/top"
)

// troubled are hosts in trouble, each fault alone, several at once, many chips.
func troubled() map[string]*model.Snapshot {
	one := func(change func(s *model.Snapshot, d *model.Device)) *model.Snapshot {
		s := busy()
		change(s, &s.Devices[1])
		return s
	}
	state := func(is model.State, why model.Cause) *model.Snapshot {
		return one(func(s *model.Snapshot, d *model.Device) {
			d.State, d.StateReason = is, model.StateReason{Cause: why, Since: s.Time.Add(-2 * time.Minute)}
		})
	}
	galaxy := sample.Galaxy()
	sample.Hang(&galaxy.Devices[13])
	sample.Lose(&galaxy.Devices[20])
	for _, i := range []int{5, 9} {
		slowLink(&galaxy.Devices[i])
	}
	galaxy.Devices[2].Temperature = model.Value(galaxy.Devices[2].TemperatureLimit.V + 3)
	return map[string]*model.Snapshot{
		"well":      busy(),
		"hung":      one(func(_ *model.Snapshot, d *model.Device) { sample.Hang(d) }),
		"blocked":   state(model.StateHung, model.ReadBlocked),
		"ones":      state(model.StateHung, model.AllOnes),
		"lost":      state(model.StateLost, model.OffBus),
		"resetting": state(model.StateResetting, model.ResetWindow),
		"unknown":   state(model.StateUnknown, model.NoTelemetry),
		"heat":      one(func(_ *model.Snapshot, d *model.Device) { slow(d); heat(d) }),
		"power":     one(func(_ *model.Snapshot, d *model.Device) { slow(d); d.Power = model.Value(99.0) }),
		"current":   one(func(_ *model.Snapshot, d *model.Device) { slow(d); d.Current = model.Value(99.0) }),
		"hot":       one(func(_ *model.Snapshot, d *model.Device) { heat(d) }),
		"slow link": one(func(_ *model.Snapshot, d *model.Device) { slowLink(d) }),
		"tripped":   one(func(_ *model.Snapshot, d *model.Device) { d.ThermalTrips = model.Value(uint32(2)) }),
		"unbound":   one(func(s *model.Snapshot, _ *model.Device) { s.Host.Unbound = []string{"0000:09:00.0"} }),
		"denied":    one(func(_ *model.Snapshot, d *model.Device) { heat(d); d.Memory.Tracking = model.TrackDenied }),
		"hidden":    one(func(s *model.Snapshot, d *model.Device) { slow(d); heat(d); s.Processes, d.HiddenFDs = nil, 2 }),
		"old driver": one(func(s *model.Snapshot, d *model.Device) {
			heat(d)
			s.Host.DriverVersion = model.Value("1.34")
			d.StateReason, d.Heartbeat, d.HeartbeatAge = model.StateReason{Cause: model.NoHeartbeat}, model.Reading[uint32]{}, model.Reading[float64]{}
		}),
		"several": one(func(s *model.Snapshot, d *model.Device) {
			slow(d)
			heat(d)
			slowLink(d)
			sample.Hang(&s.Devices[0])
		}),
		"alert": one(func(s *model.Snapshot, d *model.Device) {
			heat(d)
			s.Alerts = []model.Alert{{Name: "ChipHot", Severity: "warning", Summary: "hot", BusID: d.BusID, Condition: model.ConditionHot}}
		}),
		"everything": sample.Troubles(),
		"32 chips":   galaxy,
	}
}

// screen draws ttmon top.
func screen(t *testing.T, s *model.Snapshot, w, h int, layout string) string {
	t.Helper()
	c := config.Default()
	c.Top.Devices.Layout, c.Top.Charts.Show = layout, "never"
	st, err := top.New(top.Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	st.Update(tui.Resize{W: w, H: h})
	st.Update(tui.Sample{Snapshot: s})
	g := cells.NewGrid(w, h)
	st.Draw(g)
	return g.String()
}

// TestViewsAgree renders hosts in trouble in every view, and holds what each
// claims about every device against what assess found.
func TestViewsAgree(t *testing.T) {
	hosts := troubled()
	if len(hosts) < 12 {
		t.Fatal("too few hosts")
	}
	for name, s := range hosts {
		t.Run(name, func(t *testing.T) {
			a := assess.Of(s)
			agreeText(t, s, a)
			agreeTop(t, s, a)
			agreeData(t, s, a)
			agreeDigits(t, s)
			agreeChecks(t, s, a)
			agreeStream(t, s, a)
			agreeOrder(t, s, a)
			agreeEvents(t, s, a)
			agreeProcesses(t, s)
		})
	}
}

// rowOf is the line of a table that begins with a device's number.
func rowOf(t *testing.T, table string, index int) string {
	t.Helper()
	line := regexp.MustCompile(fmt.Sprintf(`(?m)^ *%d  ?\S.*$`, index)).FindString(table)
	if line == "" {
		t.Errorf("device %d has no row in\n%s", index, table)
	}
	return line
}

func agreeText(t *testing.T, s *model.Snapshot, a *assess.Assessment) {
	for _, width := range []int{80, 200} {
		table := string(text.AppendTable(nil, s, text.Options{Options: lines.Options{Width: width}}))
		for i := range s.Devices {
			d := &s.Devices[i]
			if row := rowOf(t, table, d.Index); !strings.Contains(row, " "+words.State(a, d)+" ") {
				t.Errorf("smi at %d columns says of device %d, which is %s:\n%s", width, d.Index, words.State(a, d), row)
			}
		}
		troubles := words.Troubles(s)
		for i, lines := range words.TroubleLines(troubles, width-1) {
			for _, r := range lines {
				if i < 8 && !strings.Contains(table, r) {
					t.Errorf("smi at %d columns has no line %q", width, r)
				}
				if words.Width(r) > width-1 {
					t.Errorf("%q is wider than %d", r, width-1)
				}
			}
			if all := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); !strings.Contains(all, troubles[i].Remedy) {
				t.Errorf("smi at %d columns does not say what to do, %q: %q", width, troubles[i].Remedy, lines)
			}
		}
	}
	report := string(text.AppendReport(nil, s, []text.Section{text.Health}, text.Options{}))
	memory := string((&mem.Text{}).Once(nil, s))
	for i := range s.Devices {
		d := &s.Devices[i]
		if want := "State                             : " + words.State(a, d) + "\n"; !strings.Contains(report, want) {
			t.Errorf("-q has no %q for device %d", want, d.Index)
		}
		if is := a.Device(d.Index); is.Level > model.Fine && !strings.Contains(memory, words.Kind(is.Kind)) {
			t.Errorf("mem does not say %s of device %d:\n%s", is.Kind, d.Index, memory)
		}
	}
}

// agreeDigits: the long report, the table, top and the page write the same
// digits.
func agreeDigits(t *testing.T, s *model.Snapshot) {
	reports := strings.Split(string(text.AppendReport(nil, s, nil, text.Options{})), "\nDevice ")
	table := string(text.AppendTable(nil, s, text.Options{Options: lines.Options{Width: 200}}))
	top := screen(t, s, 240, 80, "lines")
	page := pagejson.Of(s)
	for i := range s.Devices {
		d := &s.Devices[i]
		for _, section := range facts.Device(s, d).Parts {
			for _, f := range section.Pairs {
				line := regexp.MustCompile(`(?m)^ +` + regexp.QuoteMeta(f.Name) + ` +: ` + regexp.QuoteMeta(f.Value.Text) + `$`)
				if !line.MatchString(reports[i+1]) {
					t.Errorf("the page says %s %q of device %d, and -q does not:\n%s", f.Name, f.Value.Text, d.Index, reports[i+1])
				}
			}
		}
		if d.State != model.StateOK {
			continue
		}
		for _, name := range []string{"temperature.asic", "power.draw", "clocks.ai", "pcie.link"} {
			v := page.Devices[i].Values[name]
			if row := rowOf(t, table, d.Index); !strings.Contains(row, v.Text) && !strings.Contains(row, v.Of) {
				t.Errorf("the page says %q of %s, and smi does not: %s", v.Of, name, row)
			}
			if shown := name == "temperature.asic" || name == "power.draw"; shown && !strings.Contains(top, v.Text) && !strings.Contains(top, v.Of) {
				t.Errorf("the page says %q of %s, and top does not:\n%s", v.Of, name, top)
			}
		}
	}
}

func agreeTop(t *testing.T, s *model.Snapshot, a *assess.Assessment) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		page := screen(t, s, size[0], size[1], "lines")
		title, _, _ := strings.Cut(page, "\n")
		for _, n := range a.Counts() {
			if want := fmt.Sprintf("%d %s", n.N, words.Kind(n.Kind)); n.Level > model.Fine && !strings.Contains(title, want) {
				t.Errorf("the first line of top at %v has no %q: %s", size, want, title)
			}
		}
		if list := words.TroubleRows(words.Troubles(s), size[0]-2); len(list) > 0 && !strings.Contains(page, strings.TrimSpace(list[0])[:min(len(strings.TrimSpace(list[0])), 30)]) {
			t.Errorf("top at %v does not say the worst, %q:\n%s", size, list[0], page)
		}
	}
	page := screen(t, s, 200, 80, "lines")
	for i := range s.Devices {
		if d := &s.Devices[i]; !strings.Contains(page, words.State(a, d)) {
			t.Errorf("top does not say that device %d is %s:\n%s", d.Index, words.State(a, d), page)
		}
	}
}

func agreeData(t *testing.T, s *model.Snapshot, a *assess.Assessment) {
	page := pagejson.Of(s)
	var j assess.Judge
	over := *s
	j.Assess(&over)
	back, err := wire.Decode(wire.Append(nil, &over))
	if err != nil {
		t.Fatal(err)
	}
	var plain struct{ Devices []struct{ Condition string } }
	if err := json.Unmarshal(wire.Append(nil, s), &plain); err != nil {
		t.Fatal(err)
	}
	field, ok := metric.Find(metric.Devices(), "condition")
	if !ok {
		t.Fatal("there is no field condition")
	}
	w := prom.NewWalker(prom.Options{})
	w.Observe(s)
	series := map[string]float64{}
	w.Walk(s, &stream.Self{}, func(f *prom.Family, labels prom.Labels, v float64) {
		series[f.Name+"{"+string(labels.AppendText(nil))+"}"] = v
	})
	for i := range s.Devices {
		d := &s.Devices[i]
		is := a.Device(d.Index)
		kind := string(is.Kind)
		if got := page.Devices[i]; got.State != words.State(a, d) || got.Kind != kind || got.Level != is.Level.String() {
			t.Errorf("the page says of device %d, which is %s: %s, %s, %s", d.Index, kind, got.State, got.Kind, got.Level)
		}
		if got := plain.Devices[i].Condition; got != kind {
			t.Errorf("JSON says %s of device %d, which is %s", got, d.Index, kind)
		}
		if got := assess.Of(back).Device(d.Index).Kind; got != is.Kind {
			t.Errorf("after the way over JSON device %d is %s, and was %s", d.Index, got, kind)
		}
		if got := field.Get(s, d).Text; got != kind {
			t.Errorf("the query says %s of device %d, which is %s", got, d.Index, kind)
		}
		for key, v := range series {
			if !strings.HasPrefix(key, "tenstorrent_device_condition{") || !strings.Contains(key, `pci="`+d.BusID+`"`) {
				continue
			}
			k := regexp.MustCompile(`condition="(\w+)"`).FindStringSubmatch(key)[1]
			if _, holds := a.Find(d.Index, model.ConditionKind(k)); holds != (v == 1) {
				t.Errorf("%s is %g, and holds: %v", key, v, holds)
			}
		}
	}
	for _, n := range a.Counts() {
		if got := series[`tenstorrent_devices_in_condition{condition="`+string(n.Kind)+`"}`]; got != float64(n.N) {
			t.Errorf("%g devices are %s, want %d", got, n.Kind, n.N)
		}
	}
	rows := 0
	for _, r := range a.Rows() {
		rows += len(r.Conditions)
	}
	if len(page.Troubles) != rows {
		t.Errorf("the page has %d rows of trouble, want %d", len(page.Troubles), rows)
	}
}

func agreeChecks(t *testing.T, s *model.Snapshot, a *assess.Assessment) {
	want := map[model.Level]nagios.Status{model.Fine: nagios.OK, model.Info: nagios.OK, model.Warning: nagios.Warning, model.Critical: nagios.Critical}[a.Worst()]
	if got := (&nagios.Check{}).Run(s); got.Status != want {
		t.Errorf("check says %s, and the worst is %s", got.Status, a.Worst())
	}
	if bad := kube.Of(s).Status == "True"; bad != (a.Worst() == model.Critical) {
		t.Errorf("the node condition is %v, and the worst is %s", bad, a.Worst())
	}
	r := doctor.Examine(&doctor.Subject{Snapshot: s, Setup: &model.Setup{}, Daemon: doctor.DaemonState{Answers: true}})
	for _, row := range a.Rows() {
		found := false
		for _, f := range r.Findings {
			found = found || f.Code == string(row.Conditions[0].Kind) || row.Conditions[0].Kind == model.ConditionUnbound && f.Area == doctor.Driver && f.Level == doctor.Critical
		}
		if !found {
			t.Errorf("doctor does not find %s: %+v", row.Conditions[0].Kind, r.Findings)
		}
	}
}
