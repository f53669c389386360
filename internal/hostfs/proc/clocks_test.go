package proc

import "testing"

// A pause between two readings of the clocks, wherever it comes, does not move the
// events that are stamped with them.
func TestCompareClocks(t *testing.T) {
	const booted, pause = 1_000_000_000_000, 5_000_000
	for name, paused := range map[string]int{"no pause": 0, "before the first": 1, "before the wall": 2, "after the wall": 3, "at the second try": 5} {
		t.Run(name, func(t *testing.T) {
			now, readings := uint64(0), 0
			read := func() uint64 {
				if readings++; readings == paused {
					now += pause
				}
				now += 2000
				return now
			}
			got := compareClocks(func() uint64 { return booted + read() }, read)
			if off := got - booted; off < -2000 || off > 2000 {
				t.Errorf("off by %d ns", off)
			}
		})
	}
}
