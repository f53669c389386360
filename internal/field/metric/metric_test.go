package metric_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/model"
)

func names[S any](t *testing.T, table []metric.Field[S]) {
	t.Helper()
	form := regexp.MustCompile(`^[a-z0-9_]+(\.[a-z0-9_]+)*$`)
	seen, series := map[string]bool{}, map[string]bool{}
	for _, n := range metric.Names(table) {
		if !form.MatchString(n) {
			t.Errorf("%q is no dotted lower-case name", n)
		}
		if seen[n] {
			t.Errorf("%q is there twice", n)
		}
		seen[n] = true
	}
	promForm := regexp.MustCompile(`^tenstorrent_[a-z0-9_]+$`)
	for _, f := range table {
		if f.Help == "" || strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s: help %q", f.Name, f.Help)
		}
		if f.Kind == metric.Text && (f.Unit != "" || f.Per != 0) {
			t.Errorf("%s: a text with a unit", f.Name)
		}
		if p := f.Prom; p.Name != "" {
			if !promForm.MatchString(p.Name) || (p.Type == "counter") != strings.HasSuffix(p.Name, "_total") {
				t.Errorf("%s: Prometheus name %s of type %s", f.Name, p.Name, p.Type)
			}
			if series[p.Name+p.Labels] {
				t.Errorf("%s: series %s{%s} is there twice", f.Name, p.Name, p.Labels)
			}
			series[p.Name+p.Labels] = true
		}
	}
}

func TestNames(t *testing.T) {
	names(t, metric.Devices())
	names(t, metric.Apps())
}

// The table and the JSON contract say the same about every sample.
// onChip is a host whose chips' firmware was read.
func onChip() *model.Snapshot {
	s := sample.Four()
	for i := range s.Devices {
		d := &s.Devices[i]
		telemetry.Decode(d.Arch, arc.Sample(d.Arch), &d.Telemetry)
		d.Telemetry.State = model.TelemetryOK
	}
	return s
}

func TestAgreesWithJSON(t *testing.T) {
	for _, s := range []*model.Snapshot{sample.One(), sample.Four(), sample.Galaxy(), sample.Troubles(), onChip()} {
		var root map[string]any
		if err := json.Unmarshal(wire.Append(nil, s), &root); err != nil {
			t.Fatal(err)
		}
		for i := range s.Devices {
			for _, f := range metric.Devices() {
				at := root["devices"].([]any)[i]
				agree(t, root, at, -1, f.Name, f.JSON, f.Get(s, &s.Devices[i]))
			}
		}
		for i := range s.Processes {
			for j := range s.Processes[i].Devices {
				u := metric.Use{Process: &s.Processes[i], Device: &s.Processes[i].Devices[j]}
				for _, f := range metric.Apps() {
					at := root["processes"].([]any)[i]
					agree(t, root, at, j, f.Name, f.JSON, f.Get(s, u))
				}
			}
		}
	}
}

// optional reports whether JSON has a member only where it says something.
func optional(path string) bool {
	first, _, _ := strings.Cut(path, ".")
	return first == "telemetry" || first == "work"
}

func agree(t *testing.T, root, at any, use int, name, path string, got metric.Value) {
	t.Helper()
	if path == "" {
		return
	}
	if strings.HasPrefix(path, "/") {
		at, path = root, path[1:]
	}
	for part := range strings.SplitSeq(path, ".") {
		if part == "[]" {
			at = at.([]any)[use]
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			break // null above it
		}
		if at, ok = m[part]; !ok && !strings.HasSuffix(path, "free_bytes") && !strings.Contains(path, "occupied") && !strings.Contains(path, "inferred") && !optional(path) {
			t.Errorf("%s: JSON has no %s", name, path)
		}
	}
	switch v := at.(type) {
	case nil:
		if got.Known() {
			t.Errorf("%s is %+v, null in JSON", name, got)
		}
	case float64:
		if !got.Known() || math.Abs(got.Num-v) > 1e-6*math.Abs(v) {
			t.Errorf("%s is %+v, %v in JSON", name, got, v)
		}
	case bool:
		if !got.Known() || (got.Num == 1) != v {
			t.Errorf("%s is %+v, %v in JSON", name, got, v)
		}
	case string:
		if strings.ToValidUTF8(got.Text, "\ufffd") != v || got.Known() == (v == "") {
			t.Errorf("%s is %+v, %q in JSON", name, got, v)
		}
	default:
		t.Errorf("%s: JSON holds %T at %s", name, at, path)
	}
}

func TestFormat(t *testing.T) {
	s := sample.Four()
	for name, want := range map[string]string{
		"index": "0", "name": "n300 wormhole", "temperature.gpu": "52", "power.draw": "61.00", "clocks.sm": "1000",
		"memory.used": "10445", "memory.total": "24576", "pcie.rx": "1228.8", "pcie.link.degraded": "no", "pci.bus": "0x01",
		"pci.device_id": "0x401E1E52", "activity.estimate": "58", "temperature.gpu.tlimit": "23", "count": "4", "processes.count": "1",
		"voltage.core": "0.850",
	} {
		t.Run(name, func(t *testing.T) {
			c, ok := metric.Find(metric.Devices(), name)
			if !ok {
				t.Errorf("no field %s", name)
				return
			}
			v := c.Get(s, &s.Devices[0])
			if !v.Known() || c.Format(v) != want {
				t.Errorf("%s = %q (%+v), want %q", name, c.Format(v), v, want)
			}
		})
	}
}

// A figure carries its bound, which is a field of its own too; what is not
// nothing is never 0 MiB.
func TestBounds(t *testing.T) {
	s := sample.Four()
	d := &s.Devices[2]
	d.Memory.Pools[model.L1].Used = model.BoundBytes(2<<10, model.AtLeast)
	for name, want := range map[string]string{
		"memory.used": "512", "memory.used.bound": "unsure", "l1.used": "0.002", "l1.used.bound": "at_least", "memory.stale": "0", "memory.stale.bound": "exact",
	} {
		t.Run(name, func(t *testing.T) {
			c, ok := metric.Find(metric.Devices(), name)
			if !ok {
				t.Fatalf("no field %s", name)
			}
			if v := c.Get(s, d); !v.Known() || c.Format(v) != want {
				t.Errorf("%s = %q, want %q", name, c.Format(v), want)
			}
		})
	}
	used, _ := metric.Find(metric.Devices(), "memory.used")
	if v := used.Get(s, d); v.Bound != model.Unsure {
		t.Errorf("memory.used has bound %v", v.Bound)
	}
	pod := metric.Use{Process: &s.Processes[1], Device: &s.Processes[1].Devices[0]}
	for name, want := range map[string]string{"used_memory": "512", "used_memory.bound": "unsure", "memory.doubts": "other_threads graph_capture"} {
		t.Run(name, func(t *testing.T) {
			c, ok := metric.Find(metric.Apps(), name)
			if v := c.Get(s, pod); !ok || c.Format(v) != want {
				t.Errorf("%s = %q, want %q", name, c.Format(v), want)
			}
		})
	}
	c, _ := metric.Find(metric.Apps(), "used_memory.bound")
	if v := c.Get(s, metric.Use{Process: &s.Processes[1], Device: &model.DeviceUse{Tracking: model.TrackDenied}}); v.Status != model.Denied {
		t.Errorf("the bound of what is denied is %+v", v)
	}
}

// What is unknown has a reason, never a zero.
func TestMissing(t *testing.T) {
	s := sample.Troubles()
	for _, c := range []struct {
		device int
		name   string
		want   model.Status
	}{
		{0, "temperature.asic", model.Hung},
		{1, "power.draw", model.Lost},
		{2, "clocks.ai", model.Resetting},
		{0, "memory.used", model.Denied},
		{4, "memory.used", model.Unsupported},
		{4, "power.draw", model.Implausible},
		{3, "pcie.rx", model.Pending},
		{3, "utilization.gpu", model.Absent},
		{3, "memory.free", model.Absent},
		{3, "board.tray", model.Absent},
	} {
		t.Run(fmt.Sprintf("%s of %d", c.name, c.device), func(t *testing.T) {
			col, _ := metric.Find(metric.Devices(), c.name)
			if v := col.Get(s, &s.Devices[c.device]); v.Status != c.want {
				t.Errorf("%s of device %d is %+v, want %v", c.name, c.device, v, c.want)
			}
		})
	}
}

func TestSynonymIsPrintedAsNvidiaDoes(t *testing.T) {
	for name, unit := range map[string]string{"temperature.gpu": "", "temperature.asic": "C", "clocks.sm": "MHz"} {
		t.Run(name, func(t *testing.T) {
			c, ok := metric.Find(metric.Devices(), name)
			if !ok || c.Title != name || c.Unit != unit {
				t.Errorf("title %q, unit %q", c.Title, c.Unit)
			}
		})
	}
	if _, ok := metric.Find(metric.Devices(), "no.such"); ok {
		t.Error("finds what is not there")
	}
}

// docs/fields.md is the table, written out.
func TestFieldsPage(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Fields\n\nGenerated from the metric table. `ttmon smi --help-query-device` and `--help-query-apps` print the same.\n" +
		"A unit stands in the header and after each value unless `nounits` is asked for. A path of the JSON contract that starts with `/` begins\n" +
		"at the snapshot, others at the device or process.\n")
	page(&b, "--query-device", metric.Devices())
	page(&b, "--query-apps", metric.Apps())
	golden.Check(t, "../../../docs/fields.md", b.Bytes())
}

func page[S any](b *bytes.Buffer, flag string, table []metric.Field[S]) {
	fmt.Fprintf(b, "\n## `%s`\n\n| Field | Unit | Kind | Meaning | Also accepted | JSON | Prometheus |\n|---|---|---|---|---|---|---|\n", flag)
	for _, f := range table {
		var also []string
		for _, s := range f.Synonyms {
			also = append(also, "`"+s.Name+"`")
		}
		prom := f.Prom.Name
		if f.Prom.Labels != "" {
			prom += "{" + f.Prom.Labels + "}"
		}
		code := func(s string) string {
			if s == "" {
				return ""
			}
			return "`" + s + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", f.Name, f.Unit, f.Kind, f.Help, strings.Join(also, ", "), code(f.JSON), code(prom))
	}
}

// A matcher finds the values as they are, and leaves those it was given alone.
func TestMatcher(t *testing.T) {
	buses := []string{"0000:01:00.0", "a+b"}
	const want = `pci=~"0000:01:00\\.0|a\\+b"`
	for range 2 {
		if got := metric.Matcher("pci", buses...); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
