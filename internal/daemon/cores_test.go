package daemon

import (
	"fmt"
	"runtime"
	"testing"
)

func TestUseFewCores(t *testing.T) {
	for _, tt := range []struct {
		given       string
		there, want int
	}{
		{"", 96, maxCores},
		{"", 1, 1},
		{"8", 8, 8},
	} {
		t.Run(fmt.Sprintf("%q, %d cores", tt.given, tt.there), func(t *testing.T) {
			t.Setenv("GOMAXPROCS", tt.given)
			before := runtime.GOMAXPROCS(tt.there)
			UseFewCores()
			if got := runtime.GOMAXPROCS(before); got != tt.want {
				t.Errorf("GOMAXPROCS=%q on %d cores: %d, want %d", tt.given, tt.there, got, tt.want)
			}
		})
	}
}
