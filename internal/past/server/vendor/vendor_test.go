package vendor

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// answerOf is an exporter's answer for one n300 in a tray: its two chips.
func answerOf(tray int, now time.Time) string {
	var b strings.Builder
	b.WriteString("# Tenstorrent Metal Telemetry Metrics\n\n")
	line := func(name, more string, chip int, v any) {
		fmt.Fprintf(&b, "# HELP %s Unsigned integer metric\n# TYPE %s gauge\n%s{hostname=\"h\",tray=\"%d\",chip=\"%d\"%s} %v %d\n\n", name, name, name, tray, chip, more, v, now.UnixMilli())
	}
	for chip, temperature := range []float64{41, 47.5} {
		line(asicTemperature, `,unit="°C"`, chip, temperature)
		line(corePower, `,unit="W"`, chip, 20+chip)
		line(linkUp, `,channel="8"`, chip, 1)
		line(linkRetrains, `,channel="8"`, chip, 3)
		line(linkCorrected, `,channel="8"`, chip, 12345678901)
	}
	line(memorySpeed, "", 0, 14000)
	line(boardTemperature, "", 0, 0) // what it could not read is 0
	line(memoryTop, `,dram="2"`, 0, 61)
	line(correctedReads, `,dram="2"`, 0, 255)
	b.WriteString("tt_driver_initialized 1\ngo_goroutines 7\n")
	return b.String()
}

func n300(bus string, temperature float64) model.Device {
	return model.Device{BusID: bus, Temperature: model.Value(temperature), Chips: []model.Chip{{Name: "L"}, {Name: "R", Remote: true}}}
}

// filled is a host with what an answer said.
func filled(t *testing.T, text string, devices ...model.Device) *model.Snapshot {
	t.Helper()
	now := time.Now()
	s, err := parse(strings.NewReader(text), now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range devices {
		devices[i].Index = i
	}
	a := &Scraper{}
	a.last.Store(&answer{sample: s, at: now})
	before := &model.Snapshot{Time: now, Devices: devices}
	after := a.Add(before)
	if before.Devices[0].Chips[1].Temperature.Known() || before.Devices[0].Telemetry.State != model.TelemetryOff {
		t.Error("the snapshot itself was changed")
	}
	return after
}

func TestFill(t *testing.T) {
	s := filled(t, answerOf(0, time.Now()), n300("0000:c1:00.0", 40))
	d := &s.Devices[0]
	if r := d.Chips[1]; r.Temperature.V != 47.5 || r.Power.V != 21 || r.SensorsFrom != model.ByExporter {
		t.Errorf("chip R: %+v", r)
	}
	if l := d.Chips[0]; l.Temperature.Known() || l.SensorsFrom != "" {
		t.Errorf("chip L is the device's own: %+v", l)
	}
	tel := &d.Telemetry
	if tel.State != model.TelemetryOK || tel.Way != model.ByExporter || tel.MemorySpeed.V != 14000 {
		t.Errorf("telemetry: %q by %q, speed %+v", tel.State, tel.Way, tel.MemorySpeed)
	}
	if tel.BoardTemperature.Known() || tel.BoardTemperature.Why != notExported || tel.BoardPower.Known() {
		t.Errorf("board temperature %+v, power %+v", tel.BoardTemperature, tel.BoardPower)
	}
	if len(tel.Modules) != 1 || tel.Modules[0].Index != 2 || tel.MemoryTemperature.V != 61 || tel.Corrected.V != 255 || tel.CorrectedBound != model.AtLeast {
		t.Errorf("modules %+v, hottest %+v, corrected %+v %v", tel.Modules, tel.MemoryTemperature, tel.Corrected, tel.CorrectedBound)
	}
	if len(tel.Ports) != 1 || tel.Ports[0].Channel != 8 || !tel.Ports[0].Up.V || tel.Ports[0].Retrains.V != 3 || tel.Ports[0].Corrected.V != 12345678901 || tel.Ports[0].Uncorrected.Known() {
		t.Errorf("ports %+v", tel.Ports)
	}
}

// What ttmond reads itself stands; counters that it does not read are added.
func TestOwnReadingsStand(t *testing.T) {
	d := n300("0000:c1:00.0", 40)
	text := answerOf(0, time.Now())
	sample, err := parse(strings.NewReader(text), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	d.Telemetry = model.Telemetry{State: model.TelemetryOK, Way: model.ByResource, MemorySpeed: model.Value(16000.0), Ports: []model.EthernetPort{{
		Channel: 8, Up: model.Value(false), Retrains: model.Value(uint32(9)), Link: model.LinkHere,
	}}}
	snap := &model.Snapshot{Devices: []model.Device{d}}
	sample.fill(snap)
	tel := &snap.Devices[0].Telemetry
	if p := tel.Ports[0]; tel.Way != model.ByResource || tel.MemorySpeed.V != 16000 || p.Up.V || p.Retrains.V != 9 || p.Corrected.V != 12345678901 || p.Link != model.LinkHere {
		t.Errorf("way %q, speed %v, port %+v", tel.Way, tel.MemorySpeed, p)
	}
}

// Where it is not certain which board is which, nothing is shown.
func TestPlaces(t *testing.T) {
	now := time.Now()
	two := answerOf(1, now) + answerOf(2, now)
	two = strings.ReplaceAll(two, "# HELP", "# note")
	two = strings.ReplaceAll(two, "# TYPE", "# note")
	old := answerOf(0, now.Add(-time.Hour)) + "tt_x{tray=\"0\",chip=\"0\"} 1\n"
	for _, tt := range []struct {
		name    string
		text    string
		devices []model.Device
		why     string // "": known
	}{
		{"one board", answerOf(0, now), []model.Device{n300("0000:03:00.0", 41)}, ""},
		{"two boards in tray 0", answerOf(0, now), []model.Device{n300("0000:03:00.0", 41), n300("0000:04:00.0", 41)}, "which board is which"},
		{"another temperature", answerOf(0, now), []model.Device{n300("0000:03:00.0", 80)}, "temperatures"},
		{"two boards of a known mainboard", two, []model.Device{n300("0000:c1:00.0", 41), n300("0000:01:00.0", 41)}, ""},
		{"and one that does not belong there", two, []model.Device{n300("0000:c1:00.0", 41), n300("0000:02:00.0", 41)}, "which board is which"},
		{"a board that it does not have", two, []model.Device{n300("0000:41:00.0", 41)}, "does not have all boards"},
		{"values of an hour ago", old, []model.Device{n300("0000:03:00.0", 41)}, "does not export"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := filled(t, tt.text, tt.devices...)
			for i := range s.Devices {
				r := s.Devices[i].Chips[1].Temperature
				if tt.why == "" && r.V != 47.5 || tt.why != "" && (r.Known() || !strings.Contains(r.Why, tt.why)) {
					t.Errorf("device %d: %+v, want %q", i, r, tt.why)
				}
			}
		})
	}
}

func TestScrape(t *testing.T) {
	status, text := http.StatusOK, answerOf(0, time.Now())
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}))
	defer web.Close()
	s := New(web.URL, slog.New(slog.DiscardHandler))
	snap := &model.Snapshot{Time: time.Now(), Devices: []model.Device{n300("0000:03:00.0", 41)}}
	remote := func() model.Reading[float64] { return s.Add(snap).Devices[0].Chips[1].Temperature }
	if got := s.Add(snap); got != snap {
		t.Error("something was added before the first answer")
	}
	s.scrape(context.Background())
	if r := remote(); r.V != 47.5 {
		t.Errorf("%+v", r)
	}
	snap.Time = time.Now().Add(time.Hour)
	if r := remote(); r.Status != model.Stale {
		t.Errorf("an hour later: %+v", r)
	}
	snap.Time = time.Now()
	for _, broken := range []struct {
		status int
		text   string
	}{{http.StatusNotFound, ""}, {http.StatusOK, "<html>"}, {http.StatusOK, "up 1\n"}} {
		t.Run(fmt.Sprint(broken.status, broken.text), func(t *testing.T) {
			status, text = broken.status, broken.text
			s.scrape(context.Background())
			if r := remote(); r.Known() || !strings.Contains(r.Why, "does not answer") {
				t.Errorf("%+v: %+v", broken, r)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for address, ok := range map[string]bool{
		"http://127.0.0.1:8080/metrics": true, "http://localhost:18080/metrics": true, "http://[::1]:8080/metrics": true,
		"http://10.0.0.1:8080/metrics": false, "https://localhost/metrics": false, "localhost:8080": false, "": false, "http://": false,
	} {
		t.Run(address, func(t *testing.T) {
			if err := Check(address); (err == nil) != ok {
				t.Errorf("%q: %v", address, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(answerOf(1, time.Now()))
	f.Add("tt_ethernet_retrain_count{tray=\"1\",chip=\"2\",channel=\"0\"} 1e300\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse(strings.NewReader(text), time.Now())
		if err != nil {
			return
		}
		snap := &model.Snapshot{Devices: []model.Device{n300("0000:c1:00.0", 40)}}
		s.fill(snap)
		if r := snap.Devices[0].Chips[1].Temperature; r.Known() && r.V <= 0 {
			t.Errorf("%+v", r)
		}
	})
}

// What a link carries is 0 only if it has ever carried something: the exporter
// publishes 0 for programs that do not count.
func TestTraffic(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values map[string]float64
		want   model.Reading[float64] // without its reason
	}{
		{"it is not exported", nil, model.Reading[float64]{}},
		{"nothing was ever counted", map[string]float64{fabricSent: 0, fabricSentTotal: 0, fabricRecvTotal: 0}, model.Reading[float64]{}},
		{"a link that is idle now", map[string]float64{fabricSent: 0, fabricSentTotal: 4096}, model.Value(0.0)},
		{"a link at work", map[string]float64{fabricSent: 1250.5}, model.Value(1250.5e6)},
		{"less than nothing", map[string]float64{fabricSent: -1}, model.Reading[float64]{Status: model.Implausible}},
		{"not a number", map[string]float64{fabricSent: math.NaN()}, model.Reading[float64]{Status: model.Implausible}},
		{"without end", map[string]float64{fabricSent: math.Inf(1)}, model.Reading[float64]{Status: model.Implausible}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := traffic(tt.values, fabricSent)
			if !got.Known() && got.Why == "" {
				t.Error("it is missing without a reason")
			}
			if got.Why = ""; got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}
