package chip

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(t time.Duration) Now { return Now{Physics: t, Beat: t} }

// when lets it be a moment for the chip.
func when(c *Chip, now Now) *Chip {
	c.time = func() Now { return now }
	return c
}

func newChip(t *testing.T, card string, seed uint64) *Chip {
	t.Helper()
	s, err := SpecOf(card)
	if err != nil {
		t.Fatal(err)
	}
	return New(s, Identity{Serial: 1}, Firmware{}, seed, func() Now { return Now{} })
}

func word(t *testing.T, c *Chip, tag Tag, now Now) uint32 {
	t.Helper()
	w, ok := when(c, now).Word(tag)
	if !ok {
		t.Fatalf("tag %d is not published", tag)
	}
	return w
}

func degrees(t *testing.T, c *Chip, now Now) float64 {
	return float64(int32(word(t, c, ASICTemp, now))) / 65536
}

// TestCausality follows load to power to temperature to fan, and back.
func TestCausality(t *testing.T) {
	for _, tt := range []struct {
		card       string
		idle, busy uint32 // MHz
	}{{"n150", 500, 1000}, {"p150a", 800, 1350}} {
		t.Run(tt.card, func(t *testing.T) {
			c := newChip(t, tt.card, 1)
			idleT, idleW := degrees(t, c, at(0)), word(t, c, TDP, at(0))
			if got := word(t, c, AIClk, at(0)); got != tt.idle {
				t.Errorf("idle clock %d, want %d", got, tt.idle)
			}
			when(c, at(time.Second)).SetLoad(1)
			if got := word(t, c, AIClk, at(1100*time.Millisecond)); got != tt.busy {
				t.Errorf("busy clock %d, want %d", got, tt.busy)
			}
			soonW, soonT := word(t, c, TDP, at(4*time.Second)), degrees(t, c, at(4*time.Second))
			if soonW < 2*idleW {
				t.Errorf("power 3 s after the load came: %d W, idle was %d W", soonW, idleW)
			}
			lateT := degrees(t, c, at(3*time.Minute))
			if !(idleT < soonT && soonT < lateT-5) {
				t.Errorf("temperatures idle %.1f, 3 s later %.1f, warm %.1f: heat must lag behind power", idleT, soonT, lateT)
			}
			if limit := c.spec.LimitC; lateT >= limit || lateT < limit-30 {
				t.Errorf("warm temperature %.1f, limit %.0f", lateT, limit)
			}
			mv, amps, watts := word(t, c, VCore, at(3*time.Minute)), word(t, c, TDC, at(3*time.Minute)), word(t, c, TDP, at(3*time.Minute))
			if p := float64(mv) * float64(amps) / 1000; math.Abs(p-float64(watts)) > 2 {
				t.Errorf("%d mV × %d A is not %d W", mv, amps, watts)
			}
			when(c, at(3*time.Minute)).SetLoad(0)
			if got := degrees(t, c, at(10*time.Minute)); math.Abs(got-idleT) > 2 {
				t.Errorf("cooled down to %.1f, was %.1f", got, idleT)
			}
		})
	}
}

func TestFanFollowsTemperature(t *testing.T) {
	c := newChip(t, "p150a", 3)
	cold := word(t, c, FanRPM, at(0))
	when(c, at(0)).SetLoad(1)
	if hot := word(t, c, FanRPM, at(2*time.Minute)); hot < cold+500 {
		t.Errorf("fan went from %d to %d rpm under load", cold, hot)
	}
	if _, ok := newChip(t, "p150b", 3).Word(FanRPM); ok {
		t.Error("a board without a fan has a fan speed")
	}
}

// TestSameSeedSameHistory: how often a chip is asked must not matter.
func TestSameSeedSameHistory(t *testing.T) {
	a, b, other := newChip(t, "p150a", 7), newChip(t, "p150a", 7), newChip(t, "p150a", 8)
	for _, c := range []*Chip{a, b, other} {
		when(c, at(0)).SetLoad(0.7)
	}
	for step := range 500 {
		word(t, a, ASICTemp, at(time.Duration(step)*10*time.Millisecond))
	}
	var differs bool
	for _, tag := range []Tag{ASICTemp, TDP, TDC, VCore, FanRPM, Heartbeat, ASICIDHigh} {
		x, y, z := word(t, a, tag, at(5*time.Second)), word(t, b, tag, at(5*time.Second)), word(t, other, tag, at(5*time.Second))
		if x != y {
			t.Errorf("tag %d is %d and %d with one seed", tag, x, y)
		}
		differs = differs || x != z
	}
	if !differs {
		t.Error("another seed makes no difference")
	}
	if x, y := when(a, at(5*time.Second)).Count(ChipReads, 0), when(b, at(5*time.Second)).Count(ChipReads, 0); x != y {
		t.Errorf("counters are %d and %d with one seed", x, y)
	}
}

func TestHeartbeat(t *testing.T) {
	for card, perSecond := range map[string]uint32{"n150": 2, "p150a": 10} {
		t.Run(card, func(t *testing.T) {
			c := newChip(t, card, 1)
			if got := word(t, c, Heartbeat, at(10*time.Second)) - word(t, c, Heartbeat, at(0)); got != 10*perSecond {
				t.Errorf("%d beats in 10 s, want %d", got, 10*perSecond)
			}
			when(c, at(20*time.Second)).Reset()
			if got := word(t, c, Heartbeat, at(21*time.Second)); got != perSecond {
				t.Errorf("%d a second after a reset, want %d", got, perSecond)
			}
		})
	}
	c := newChip(t, "p150a", 1)
	now := word(t, c, Heartbeat, at(0))
	if got := word(t, c, Heartbeat, Now{Physics: 0, Beat: time.Second}); got == now {
		t.Error("the heart of a frozen chip stands still")
	}
}

func TestTraffic(t *testing.T) {
	c := newChip(t, "p150a", 1)
	total := func(now Now, which ...Counter) (words uint64) {
		for _, w := range which {
			for noc := range NOCs {
				words += uint64(when(c, now).Count(w, noc))
			}
		}
		return words
	}
	when(c, at(0)).SetCounters(-1, -1, 0)
	when(c, at(50*time.Millisecond)).SetTraffic(3.2e9, 6.4e8) // in the middle of a step
	when(c, at(70*time.Millisecond)).SetTraffic(3.2e9, 6.4e8) // and again: nothing is lost or counted twice
	to := at(10*time.Second + 50*time.Millisecond)
	for _, tt := range []struct {
		name string
		got  uint64
		want float64
	}{
		{"to the device", total(to, HostWrites, HostWritesNonposted, ChipReads), 10 * 3.2e9 / 32},
		{"from the device", total(to, HostReads, ChipWrites, ChipWritesNonposted), 10 * 6.4e8 / 32},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if math.Abs(float64(tt.got)-tt.want) > 20 {
				t.Errorf("%d words in 10 s, want %.0f", tt.got, tt.want)
			}
		})
	}
	when(c, to).SetCounters(ChipReads, 1, math.MaxUint32)
	if got := when(c, at(11*time.Second)).Count(ChipReads, 1); got > 1<<31 {
		t.Errorf("counter after its wrap: %d", got)
	}
	when(c, at(12*time.Second)).SetTraffic(-1, -1)
	a, b := total(at(12*time.Second), ChipReads), total(at(13*time.Second), ChipReads)
	if a != b {
		t.Errorf("an idle chip without fixed traffic moved %d words", b-a)
	}
}

func TestHangStopsWordsNotCounters(t *testing.T) {
	c := newChip(t, "n150", 1)
	when(c, at(0)).SetLoad(1)
	when(c, at(time.Second)).Hang()
	before := []uint32{word(t, c, ASICTemp, at(time.Second)), word(t, c, Heartbeat, at(time.Second))}
	early, late := when(c, at(time.Second)).Count(ChipReads, 0), when(c, at(time.Minute)).Count(ChipReads, 0)
	after := []uint32{word(t, c, ASICTemp, at(time.Minute)), word(t, c, Heartbeat, at(time.Minute))}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("words of hung firmware moved:\n%s", diff)
	}
	if early == late {
		t.Error("counters stand still")
	}
	when(c, at(time.Minute)).Unhang()
	if got := word(t, c, Heartbeat, at(61*time.Second)); got != before[1]+2 {
		t.Errorf("heartbeat a second after: %d, want to go on from %d", got, before[1])
	}
}

func TestThrottling(t *testing.T) {
	c := newChip(t, "p150a", 1)
	when(c, at(0)).SetLoad(1)
	when(c, at(0)).SetAmbient(80) // the air conditioning failed
	clk, temp := word(t, c, AIClk, at(5*time.Minute)), degrees(t, c, at(5*time.Minute))
	if clk >= 1350 || temp < 90 || temp > 105 {
		t.Errorf("hot: %d MHz at %.1f °C", clk, temp)
	}
}

func TestWordsByHand(t *testing.T) {
	c := newChip(t, "p150b", 1)
	c.SetWord(FanRPM, 77)
	if got := word(t, c, FanRPM, at(0)); got != 77 {
		t.Errorf("word by hand %d", got)
	}
	c.ClearWord(0)
	if c.Publishes(FanRPM) {
		t.Error("a cleared word is still published")
	}
}
