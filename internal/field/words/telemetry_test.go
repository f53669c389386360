package words

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func TestEveryTelemetryCauseHasASentence(t *testing.T) {
	for _, c := range model.TelemetryCauses() {
		if TelemetryCause(c) == string(c) {
			t.Errorf("no sentence for %q", c)
		}
	}
	if n := len(telemetrySentences); n != len(model.TelemetryCauses()) {
		t.Errorf("%d sentences for %d causes", n, len(model.TelemetryCauses()))
	}
}
