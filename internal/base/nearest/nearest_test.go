package nearest

import "testing"

func TestWord(t *testing.T) {
	known := []string{"power.draw", "power.limit", "temperature.asic", "temperature.gpu", "index", "memory.used", "smi", "top"}
	for word, want := range map[string]string{
		"power.drow": "power.draw", "memroy.used": "memory.used", "power": "power.draw", "indx": "index",
		"temperature.cpu": "temperature.gpu", "banana": "", "": "", "x": "", "foo": "", "tpo": "top", "sm": "smi",
	} {
		t.Run(word, func(t *testing.T) {
			if got := Word(word, known); got != want {
				t.Errorf("Word(%q) = %q, want %q", word, got, want)
			}
		})
	}
}
