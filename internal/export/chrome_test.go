package export

import (
	"fmt"
	"testing"
)

func TestMicro(t *testing.T) {
	for ns, want := range map[int64]string{0: "0", 1: "0.001", 1500: "1.500", 2_000_000: "2000", -1: "-0.001", -1500: "-1.500", -2_000_000: "-2000"} {
		t.Run(fmt.Sprint(ns), func(t *testing.T) {
			if got := string(micro(ns)); got != want {
				t.Errorf("%d ns: %s, want %s", ns, got, want)
			}
		})
	}
}
