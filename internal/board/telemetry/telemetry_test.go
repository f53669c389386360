package telemetry_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/model"
)

// The words of the sample chips, decoded: every reading was compared with the
// table of tags by a person.
func TestDecodeGolden(t *testing.T) {
	for _, arch := range []model.Arch{model.Wormhole, model.Blackhole} {
		for name, bundle := range map[string]uint32{"19.15": 19<<24 | 15<<16, "18.11": 18<<24 | 11<<16} {
			t.Run(string(arch)+" "+name, func(t *testing.T) {
				w := arc.Sample(arch)
				w[28] = bundle
				var got struct {
					Telemetry model.Telemetry
					Device    model.Device
				}
				telemetry.Decode(arch, w, &got.Telemetry)
				got.Device.Arch = arch
				telemetry.Apply(&got.Device, w)
				text, err := json.MarshalIndent(plain(t, got), "", " ")
				if err != nil {
					t.Fatal(err)
				}
				golden.Check(t, "testdata/"+string(arch)+"-"+name+".json", append(text, '\n'))
			})
		}
	}
}

// plain leaves out what says nothing, and writes readings as their value or
// their reason.
func plain(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	return prune(tree)
}

func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if status, ok := v["Status"].(float64); ok {
			if model.Status(status) == model.Known {
				return v["V"]
			}
			if why := v["Why"]; why != "" {
				return model.Status(status).String() + ": " + why.(string)
			}
			return nil
		}
		for k := range v {
			if v[k] = prune(v[k]); v[k] == nil || v[k] == "" {
				delete(v, k)
			}
		}
		for _, k := range []string{"Chips", "Memory", "Doubts", "Lock", "PCIID", "Pods", "ReadAt", "Since", "StateReason", "HiddenFDs"} {
			if _, isMap := v[k].(map[string]any); !isMap || k != "Memory" || v["Tensix"] == nil {
				if k != "Memory" || v["Tensix"] == nil {
					delete(v, k)
				}
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	case float64:
		return v
	}
	return v
}

func TestTagsCollide(t *testing.T) {
	words := telemetry.Words{28: 19<<24 | 15<<16, 78: 1800, 79: 1900, 76: 4, 69: 1<<16 | 4}
	var wh, bh model.Telemetry
	telemetry.Decode(model.Wormhole, words, &wh)
	telemetry.Decode(model.Blackhole, words, &bh)
	// On Wormhole 78 and 79 are speeds of two fans in some releases, percent and
	// rpm of one in others, and nothing says which.
	if len(wh.Fans) != 0 || len(bh.Fans) != 0 || wh.ThrottleStarts.Known() || wh.Clock.Reason.Known() {
		t.Error("a tag of one architecture was decoded as that of the other")
	}
	if bh.ThrottleStarts.V != 4 || bh.Clock.Limit != model.LimitThermal {
		t.Errorf("blackhole: %+v %+v", bh.ThrottleStarts, bh.Clock.Reason)
	}
}

func TestThrottled(t *testing.T) {
	for _, tt := range []struct {
		name        string
		reason, min uint32
		want        model.ClockLimit
		throttled   bool
	}{
		{"heat, at work", 1<<16 | 4, 1<<16 | 1350, model.LimitThermal, true},
		{"heat, idle", 1<<16 | 4, 800, "", false},
		{"the highest clock", 1 << 16, 1<<16 | 1350, "", false},
		{"as work asks", 1, 1<<16 | 1350, "", false},
		{"the host's cap", 1<<16 | 10, 1<<16 | 1350, model.LimitHost, true},
		{"an arbiter of the future", 1<<16 | 40, 1<<16 | 1350, model.LimitOther, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := arc.Sample(model.Blackhole)
			w[28], w[69], w[65] = 19<<24|7<<16, tt.reason, tt.min
			var got model.Telemetry
			telemetry.Decode(model.Blackhole, w, &got)
			if by, is := got.Clock.Throttled(); by != tt.want || is != tt.throttled {
				t.Errorf("throttled %v by %q, want %v by %q", is, by, tt.throttled, tt.want)
			}
		})
	}
}

// What the driver said stands; what the catalogue would have said is replaced.
func TestApplyKeepsTheDriversWord(t *testing.T) {
	d := model.Device{Arch: model.Blackhole, PowerLimit: model.Value(99.0), BoardPowerLimit: model.Missing[float64](model.Absent, "x")}
	d.Cores = model.NominalValue(140)
	telemetry.Apply(&d, arc.Sample(model.Blackhole))
	if d.PowerLimit.V != 99 || d.BoardPowerLimit.V != 300 || d.Cores.V != 120 || d.Cores.Nominal {
		t.Errorf("power limit %v, board power limit %v, cores %+v", d.PowerLimit.V, d.BoardPowerLimit.V, d.Cores)
	}
}

func TestHeaders(t *testing.T) {
	for _, tt := range []struct {
		version, count uint32
		want           model.TelemetryCause
	}{
		{0x0000_0100, 76, ""},
		{0x0001_0000, 41, ""},
		{0x0002_0000, 41, model.TableUnknown},
		{0x0100_0000, 41, model.TableUnknown},
		{0, 41, model.TableUnknown},
		{0x0001_0000, 0, model.NoTable},
		{0x0001_0000, 1025, model.TableInvalid},
		{telemetry.AllOnes, telemetry.AllOnes, model.ReadAllOnes},
	} {
		t.Run(fmt.Sprintf("%#x, %d entries", tt.version, tt.count), func(t *testing.T) {
			if _, got := telemetry.CheckHeader(telemetry.MemoryStart, tt.version, tt.count); got != tt.want {
				t.Errorf("version %#x, %d entries: %q, want %q", tt.version, tt.count, got, tt.want)
			}
		})
	}
	if _, got := telemetry.CheckHeader(telemetry.MemoryEnd-16, 0x0001_0000, 10); got != model.TableInvalid {
		t.Errorf("a table that ends outside of the memory: %q", got)
	}
}

// Whatever the words are, every address stays inside of the memory, and decoding
// neither panics nor makes a number out of all ones.
func FuzzDecode(f *testing.F) {
	f.Add(uint32(0x1001_0000), uint32(0x1001_1000), []byte{54, 0, 1, 0, 0, 0, 0, 0}, uint32(19<<24))
	f.Add(uint32(0), uint32(telemetry.AllOnes), []byte{255, 255, 255, 255}, uint32(telemetry.AllOnes))
	f.Fuzz(func(t *testing.T, table, data uint32, entries []byte, word uint32) {
		if telemetry.CheckPointers(table, data) != "" {
			return
		}
		var words []uint32
		for i := 0; i+4 <= len(entries); i += 4 {
			words = append(words, uint32(entries[i])|uint32(entries[i+1])<<8|uint32(entries[i+2])<<16|uint32(entries[i+3])<<24)
		}
		x := telemetry.NewIndex(table, data, words)
		w := telemetry.Words{}
		for _, e := range x.Entries {
			if a := x.Address(e); !telemetry.InMemory(a) {
				t.Fatalf("address %#x", a)
			}
			w[e.Tag] = word
		}
		for _, arch := range []model.Arch{model.Wormhole, model.Blackhole, model.UnknownArch} {
			var got model.Telemetry
			telemetry.Decode(arch, maps.Clone(w), &got)
			d := model.Device{Arch: arch}
			telemetry.Apply(&d, w)
			if got.BoardPower.Known() && got.BoardPower.V > 3000 {
				t.Errorf("board power %v", got.BoardPower.V)
			}
		}
	})
}

// A Wormhole in the middle of a Galaxy has 16 links that are all up: all ones,
// which are believed only beside other words.
func TestAllLinksUp(t *testing.T) {
	const ones, bundle = 0xFFFF_FFFF, 19<<24 | 9<<16
	for name, tt := range map[string]struct {
		arch  model.Arch
		words telemetry.Words
		up    int
	}{
		"all links are up":    {model.Wormhole, telemetry.Words{21: ones, 28: bundle, 53: 120}, 16},
		"one is down":         {model.Wormhole, telemetry.Words{21: ones &^ (1 << 20), 28: bundle}, 15},
		"off the bus":         {model.Wormhole, telemetry.Words{21: ones, 28: ones, 53: ones}, 0},
		"nothing else":        {model.Wormhole, telemetry.Words{21: ones}, 0},
		"impossible channels": {model.Blackhole, telemetry.Words{21: ones, 28: bundle, 35: 0x3FFF}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got model.Telemetry
			telemetry.Decode(tt.arch, tt.words, &got)
			up := 0
			for _, p := range got.Ports {
				if p.Up.V {
					up++
				}
			}
			if up != tt.up {
				t.Errorf("%d links up, want %d: %+v", up, tt.up, got.Ports)
			}
		})
	}
}
