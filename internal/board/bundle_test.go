package board

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestParseBundle(t *testing.T) {
	for in, want := range map[string]Bundle{
		"19.5.0.0":        {19, 5, 0, 0},
		"255.255.255.255": {255, 255, 255, 255},
		"18.12.1.3":       {18, 12, 1, 3},
	} {
		t.Run(in, func(t *testing.T) {
			if got, ok := ParseBundle(in); !ok || got != want {
				t.Errorf("ParseBundle(%q) = %v, %v", in, got, ok)
			}
		})
	}
	for _, in := range []string{"", "0.0.0.0", "19.5", "19.5.0", "19.5.0.0.1", "19.5.0.", "256.0.0.0", "-1.0.0.0", "19.5.0.x", " 19.5.0.0", "19.5.0.0.", "unknown"} {
		t.Run(in, func(t *testing.T) {
			if got, ok := ParseBundle(in); ok {
				t.Errorf("ParseBundle(%q) = %v, want it refused", in, got)
			}
		})
	}
}

func TestBundleOrder(t *testing.T) {
	byAge := []string{"80.0.1.0", "80.17.0.0", "81.2.0.0", "0.9.0.0", "18.3.0.0", "18.12.0.1", "18.12.0.2", "18.12.0.0", "18.12.1.0", "19.5.0.0", "19.10.0.0", "20.0.0.0"}
	shuffled := slices.Clone(byAge)
	slices.Sort(shuffled) // as text, which is wrong
	slices.SortFunc(shuffled, func(a, b string) int {
		x, _ := ParseBundle(a)
		y, _ := ParseBundle(b)
		return x.Compare(y)
	})
	if !slices.Equal(shuffled, byAge) {
		t.Errorf("by age: %v\n   want: %v", shuffled, byAge)
	}
}

func TestBundleOrderIsAnOrder(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) Bundle {
		u := rapid.Uint8()
		return Bundle{u.Draw(t, "major"), u.Draw(t, "minor"), u.Draw(t, "patch"), u.Draw(t, "rc")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := gen.Draw(t, "a"), gen.Draw(t, "b"), gen.Draw(t, "c")
		if a.Compare(b) != -b.Compare(a) {
			t.Fatal("not antisymmetric")
		}
		if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
			t.Fatal("not transitive")
		}
		if parsed, ok := ParseBundle(a.String()); parsed != a || ok != (a != Bundle{}) {
			t.Fatalf("parsed %v", parsed)
		}
		if !a.Has(a.Major, a.Minor) {
			t.Fatal("a bundle has what its own series has")
		}
	})
}
