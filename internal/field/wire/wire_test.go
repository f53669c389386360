package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
)

var samples = map[string]func() *model.Snapshot{
	"nodriver": sample.NoDriver, "none": sample.None, "one": sample.One, "four": sample.Four,
	"galaxy": sample.Galaxy, "troubles": sample.Troubles,
}

// figures compares memory figures, whose parts are unexported.
var figures = cmp.Comparer(func(a, b model.Bytes) bool { return a == b })

func TestRoundTrip(t *testing.T) {
	for name, make := range samples {
		t.Run(name, func(t *testing.T) {
			want := make()
			for i := range want.Processes { // what JSON cannot hold, it replaces
				if c := &want.Processes[i].Cmdline; c.Known() {
					c.V = strings.ToValidUTF8(c.V, "\ufffd")
				}
				for j := range want.Processes[i].Devices {
					if u := &want.Processes[i].Devices[j]; u.Tracking == "" {
						u.Tracking = model.TrackAbsent
					}
				}
			}
			got, err := wire.Decode(wire.Append(nil, want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, figures); diff != "" {
				t.Errorf("compact (-want +got):\n%s", diff)
			}
			got, err = wire.Decode(wire.AppendIndented(nil, want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, figures); diff != "" {
				t.Errorf("indented (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecoderInTurn: what a decoder read before is in no later snapshot, whichever of
// them is larger.
func TestDecoderInTurn(t *testing.T) {
	var d wire.Decoder
	for _, name := range []string{"one", "galaxy", "none", "troubles", "four", "nodriver", "galaxy"} {
		t.Run(name, func(t *testing.T) {
			data := wire.Append(nil, samples[name]())
			want, err := wire.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			clear(data) // nothing of it is in the snapshot
			if diff := cmp.Diff(want, got, figures); diff != "" {
				t.Errorf("-alone +in turn:\n%s", diff)
			}
		})
	}
}

// Whatever the model holds is in the contract: a field added there and
// forgotten here does not survive the trip.
func TestEveryFieldTravels(t *testing.T) {
	want := new(model.Snapshot)
	n := 0
	fill(reflect.ValueOf(want).Elem(), &n)
	got, err := wire.Decode(wire.Append(nil, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, figures); diff != "" {
		t.Errorf("(-model +after the trip):\n%s", diff)
	}
}

// fill gives every field a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(sample.Time.Add(time.Duration(*n) * time.Second)))
	case v.Type() == reflect.TypeFor[model.Status]():
		v.SetUint(uint64(model.Known))
	case v.Type() == reflect.TypeFor[model.Bound]():
		v.SetUint(uint64(*n % 3))
	case v.Type() == reflect.TypeFor[model.Level]():
		v.SetUint(uint64(model.Warning))
	case v.Type() == reflect.TypeFor[model.Bytes]():
		v.Set(reflect.ValueOf(model.BoundBytes(uint64(*n), model.Bound(*n%3))))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Why" { // only of missing readings
				fill(v.Field(i), n)
			}
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(int64(*n))
	case v.CanUint():
		v.SetUint(uint64(*n % 250))
	case v.CanFloat():
		v.SetFloat(float64(*n) + 0.5)
	default:
		panic(v.Type())
	}
}

// Encoding must not write to a snapshot that others read.
func TestEncodingLeavesTheSnapshotAlone(t *testing.T) {
	s := sample.Troubles()
	wire.Append(nil, s)
	if diff := cmp.Diff(sample.Troubles(), s, figures); diff != "" {
		t.Error(diff)
	}
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"one", "troubles"} {
		t.Run(name, func(t *testing.T) {
			got := append(wire.AppendIndented(nil, samples[name]()), '\n')
			golden.Check(t, filepath.Join("testdata", name+".json"), got)
			var compact bytes.Buffer
			if err := json.Compact(&compact, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(compact.String(), string(wire.Append(nil, samples[name]()))); diff != "" {
				t.Errorf("compact and indented differ:\n%s", diff)
			}
		})
	}
}

// Output that is only read must not reach a terminal's controls.
func TestHarmlessOnATerminal(t *testing.T) {
	out := wire.Append(nil, sample.Troubles())
	for _, bad := range []string{"\x1b", "\u202e", "\u009b", "\n", "\xff"} {
		if bytes.Contains(out, []byte(bad)) {
			t.Errorf("the output holds %q", bad)
		}
	}
	var v struct {
		Processes []struct {
			Name *string
		}
	}
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatal(err)
	}
	if got := *v.Processes[3].Name; got != "evil\x1b[2J" {
		t.Errorf("the name reads back as %q", got)
	}
}

// Every null but that of an unaccounted figure has a reason next to it.
func TestEveryNullHasAReason(t *testing.T) {
	for name, make := range samples {
		t.Run(name, func(t *testing.T) {
			var v map[string]any
			if err := json.Unmarshal(wire.Append(nil, make()), &v); err != nil {
				t.Fatal(err)
			}
			nullable := map[string]bool{ // null says that there is none
				"tray": true, "slot": true, "container": true, "slurm_job": true, "slurm_step": true, "slurm_from": true, "systemd_unit": true,
				"name": true, "region": true, "cb_means": true, "condition": true, "read_at": true, "start_time": true, "index": true, "pod": true, "pod_name": true, "namespace": true,
				"state_cause": true, "state_file": true, "state_since": true,
			}
			for _, d := range append(v["devices"].([]any), v["processes"].([]any)...) {
				scope := d.(map[string]any)
				missing := scope["missing"].(map[string]any)
				var walk func(prefix string, m map[string]any)
				walk = func(prefix string, m map[string]any) {
					for k, v := range m {
						full := strings.TrimPrefix(prefix+"."+k, ".")
						switch v := v.(type) {
						case nil:
							if missing[full] == nil && !nullable[k] && !strings.HasPrefix(full, "memory.") {
								t.Errorf("%s is null without a reason", full)
							}
						case map[string]any:
							if k != "missing" {
								walk(full, v)
							}
						}
					}
				}
				walk("", scope)
			}
		})
	}
}

func TestDecodeIsLenientWithAge(t *testing.T) {
	got, err := wire.Decode([]byte(`{"new":[{"x":1}],"schema":"ttmon.snapshot/1","devices":[
		{"power_w":null,"index":3,"future":{"a":[]},"missing":{"power_w":"melted: too hot"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &model.Snapshot{Devices: []model.Device{{Index: 3, Power: model.Missing[float64](model.Absent, "melted: too hot")}}}
	if diff := cmp.Diff(want, got, figures); diff != "" {
		t.Error(diff)
	}
}

// A kind of doubt that only a newer ttmond knows is shown by its own sentence,
// and survives being handed on. A figure without a bound does not count as exact.
func TestDecodeOfNewerAndOlder(t *testing.T) {
	got, err := wire.Decode([]byte(`{"schema":"ttmon.snapshot/1","devices":[{"index":3,
		"doubts":[{"kind":"moonlight","text":"the moon shone","pid":7,"lumen":3}],
		"memory":{"dram":{"used_bytes":5},"l1":{"used_bytes":0,"used_bound":"at_least"},"trace":{"used_bytes":6,"used_bound":"roughly"}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	d := &got.Devices[0]
	want := []model.Doubt{{Kind: "moonlight", PID: 7, Detail: "the moon shone"}}
	if diff := cmp.Diff(want, d.Doubts); diff != "" || words.Doubt(d.Doubts[0]) != "the moon shone" {
		t.Errorf("%q\n%s", words.Doubt(d.Doubts[0]), diff)
	}
	if again, err := wire.Decode(wire.Append(nil, got)); err != nil || !again.Devices[0].Doubts[0].Equal(want[0]) {
		t.Errorf("handed on: %v, %v", again, err)
	}
	unsure := func(n uint64) model.Bytes { return model.BoundBytes(n, model.Unsure) }
	if p := &d.Memory.Pools; p[model.DRAM].Used != unsure(5) || p[model.Trace].Used != unsure(6) || p[model.L1].Used.Known() {
		t.Errorf("figures: %v", *p)
	}
}

// Every kind and every datum of a doubt travels.
func TestEveryDoubtTravels(t *testing.T) {
	s := sample.One()
	for _, row := range model.DoubtKinds {
		k := row.Kind
		s.Devices[0].Doubts = append(s.Devices[0].Doubts, model.Doubt{Kind: k}, model.Doubt{
			Kind: k, PID: 1, PIDs: []int{2, 3}, SlotPID: 4, UID: 5, Chip: 1<<63 + 6, Devices: []int{0, 7}, Region: "r", Release: "0.81.1",
			Name: "n", Version: 8, Count: 9, Source: model.FromShm, Basis: model.ByTray, Detail: "d",
		})
	}
	got, err := wire.Decode(wire.Append(nil, s))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Devices[0].Doubts, got.Devices[0].Doubts); diff != "" {
		t.Error(diff)
	}
}

// The bound of a process's figures is the worst of its pools'.
func TestBoundOfAUse(t *testing.T) {
	for _, c := range []struct {
		dram, l1 model.Bytes
		want     string
	}{
		{model.ExactBytes(1), model.ExactBytes(0), `"bound":"exact"`},
		{model.ExactBytes(1), model.NoBytes(model.Denied), `"bound":"at_least"`},
		{model.ExactBytes(1), model.BoundBytes(1, model.Unsure), `"bound":"unsure"`},
		{model.NoBytes(model.Denied), model.Bytes{}, `"bound":null`},
	} {
		t.Run(c.want, func(t *testing.T) {
			s := sample.None()
			s.Processes = []model.Process{{PID: 1, Devices: []model.DeviceUse{{Memory: model.PoolBytes{model.DRAM: c.dram, model.L1: c.l1}}}}}
			if out := wire.Append(nil, s); !bytes.Contains(out, []byte(c.want)) {
				t.Errorf("no %s in %s", c.want, out)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, "no valid JSON at byte 0"},
		{`{"schema":"ttmon.snapshot/2"}`, `schema: schema "ttmon.snapshot/2", want "ttmon.snapshot/1"`},
		{`{"schema":"ttmon.snapshot/1"} x`, "more after its end, at byte 30"},
		{`{"schema":"ttmon.snapshot/1","devices":[{"index":"a"}]}`, "devices.[].index: not a number"},
		{`{"schema":"ttmon.snapshot/1","devices":[{"index":1.5}]}`, `devices.[].index: strconv.Atoi: parsing "1.5"`},
		{`{"schema":"ttmon.snapshot/1","devices":[{"pcie":{"gen":true}}]}`, "devices.[].pcie.gen: not a number"},
		{`{"schema":"ttmon.snapshot/1","devices":{}}`, "devices: not a list"},
		{`{"schema":"ttmon.snapshot/1","devices":[7]}`, "devices.[]: not an object"},
		{`{"schema":"ttmon.snapshot/1","time":"yesterday"}`, "time: parsing time"},
		{`[]`, "not an object"},
		{strings.Repeat("[", 100000), "no valid JSON"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.in), func(t *testing.T) {
			_, err := wire.Decode([]byte(c.in))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Decode(%.60q) = %v, want %q", c.in, err, c.want)
			}
		})
	}
}

// What is no number never becomes one.
func TestNaN(t *testing.T) {
	s := sample.One()
	s.Devices[0].Power = model.Value(math.NaN())
	s.Devices[0].Current = model.Value(math.Inf(1))
	got, err := wire.Decode(wire.Append(nil, s))
	if err != nil {
		t.Fatal(err)
	}
	if got.Devices[0].Power.Known() || got.Devices[0].Current.Known() {
		t.Errorf("power %v, current %v", got.Devices[0].Power, got.Devices[0].Current)
	}
}

func TestTimesAreUTC(t *testing.T) {
	s := sample.None()
	s.Time = time.Date(2026, 11, 15, 13, 0, 3, 250_999_999, time.FixedZone("CET", 3600))
	if out := wire.Append(nil, s); !bytes.Contains(out, []byte(`"time":"2026-11-15T12:00:03.250Z"`)) {
		t.Errorf("%.100s", out)
	}
}

func FuzzDecode(f *testing.F) {
	for _, make := range samples {
		f.Add(wire.Append(nil, make()))
	}
	f.Add([]byte(`{"schema":"ttmon.snapshot/1","devices":[{"index":1,"chips":[{"id":"1"}]}],"host":{"unbound":["a"]}}`))
	f.Add([]byte(`{"schema":"ttmon.snapshot/1","devices":[{"doubts":[{"kind":"new","text":"x\\u001b"},{"kind":"slot_shared","pids":[1,2],"chip_id":"7"}],"memory":{"dram":{"used_bytes":0,"used_bound":"at_least"}}}]}`))
	f.Add([]byte(`{"schema":"\u0074tmon.snapshot/1","processes":[{"name":"\ud83d\ude80\ud800x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := wire.Decode(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepts what is no JSON: %q", data)
		}
		// What was understood survives another trip.
		again, err := wire.Decode(wire.Append(nil, s))
		if err != nil {
			t.Fatal(err)
		}
		once, twice := wire.Append(nil, s), wire.Append(nil, again)
		if !bytes.Equal(once, twice) {
			t.Fatalf("not stable:\n%s\n%s", once, twice)
		}
	})
}

// The parser agrees with encoding/json on what JSON is and on what its
// strings mean.
func FuzzParserAgreesWithTheStandardLibrary(f *testing.F) {
	for _, s := range []string{`"a"`, `"\ud83d\ude80"`, `"\ud800"`, `"\u00e9\/\b"`, "\"\xff\"", `-0.5e+3`, `01`, `[1,]`, `{"a":}`, `"\u+123"`, `nul`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		doc := []byte(`{"schema":"ttmon.snapshot/1","future":` + s + `,"source":` + s + `}`)
		got, err := wire.Decode(doc)
		var std struct {
			Source *string
			Schema string
		}
		stdErr := json.Unmarshal(doc, &std)
		if err == nil && !json.Valid(doc) {
			t.Fatalf("accepts %q", doc)
		}
		if stdErr == nil && std.Source != nil && std.Schema == wire.Schema && strings.Count(string(doc), "schema") == 1 && strings.Count(strings.ToLower(string(doc)), "source") == 1 {
			if err != nil {
				t.Fatalf("refuses %q: %v", doc, err)
			}
			if string(got.Source) != *std.Source {
				t.Fatalf("%q reads as %q, the standard library says %q", s, got.Source, *std.Source)
			}
		}
	})
}

func BenchmarkAppend32(b *testing.B) {
	s := sample.Galaxy()
	buf := wire.Append(nil, s)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = wire.Append(buf[:0], s)
	}
}

func BenchmarkDecode32(b *testing.B) {
	data := wire.Append(nil, sample.Galaxy())
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

// As ttmon-server decodes, snapshot after snapshot.
func BenchmarkDecoder32(b *testing.B) {
	data := wire.Append(nil, sample.Galaxy())
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var d wire.Decoder
	for b.Loop() {
		if _, err := d.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

// The floor for those above: the standard library, into and from bare maps.
func BenchmarkFloorUnmarshal32(b *testing.B) {
	data := wire.Append(nil, sample.Galaxy())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			b.Fatal(err)
		}
	}
}
