package words

import (
	"testing"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "4096": 4096, "512M": 512 << 20, "1.5G": 3 << 29, " 4 GiB ": 4 << 30, "2k": 2048, "1T": 1 << 40, "12B": 12, "3MB": 3 << 20,
	} {
		t.Run(text, func(t *testing.T) {
			if got, ok := ParseBytes(text); !ok || got != want {
				t.Errorf("%q is %d, %v; want %d", text, got, ok, want)
			}
		})
	}
	for _, text := range []string{"", "M", "-1", "x", "NaN", "Inf", "1e400", "9999999T", "1 2"} {
		if got, ok := ParseBytes(text); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
}
