package daemon

import (
	"runtime"
	"testing"
)

func TestUseFewCores(t *testing.T) {
	for _, tt := range []struct {
		name, given string
		there, want int
	}{
		{"many", "", 96, 2},
		{"one", "", 1, 1},
		{"given", "8", 8, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", tt.given)
			before := runtime.GOMAXPROCS(tt.there)
			UseFewCores()
			if got := runtime.GOMAXPROCS(before); got != tt.want {
				t.Errorf("GOMAXPROCS=%q on %d cores: %d, want %d", tt.given, tt.there, got, tt.want)
			}
		})
	}
}
