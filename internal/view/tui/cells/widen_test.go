package cells

import "testing"

// TestASCII: what takes more cells in ASCII takes them from the padding before it or
// from the word that is cut, so that what follows stays in its column.
func TestASCII(t *testing.T) {
	for s, want := range map[string]string{
		"  ≥9.9 GiB  ok":   " >=9.9 GiB  ok",
		"≥9.9 GiB":         ">=9.9 GiB",
		"busy ≥4 %":        "busy >=4 %",
		"serve.py --mo… x": "serve.py --... x",
		"  … 4 more":       "... 4 more",
		"ttmon …":          "ttmo...",
		"78 °C":            "78 C",
		"a 78 °C b":        "a 78 C b",
		"hot   78 °C (80)": "hot    78 C (80)",
	} {
		t.Run(s, func(t *testing.T) {
			if got := ASCII(s); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			if len(want) != len([]rune(s)) { // nothing before it gives way: a screen shows what fits
				return
			}
			g := NewGrid(len(want), 1)
			g.Area().Put(0, 0, s, Text)
			g.WidenASCII()
			line := ""
			for _, c := range g.cells {
				line += ASCIIRune(c.Rune)
			}
			if line != want {
				t.Errorf("on a screen %q, want %q", line, want)
			}
		})
	}
}
