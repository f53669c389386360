package pagejson

import (
	"math"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Value is a field of a device as the table of fields writes it.
type Value struct {
	Text  string   `json:"text"`                       // "61 W", or the word for why there is none
	Of    string   `json:"of"`                         // with its limit: "61/85 W"
	Ratio *float64 `json:"ratio"`                      // of its limit; null: not known
	Level string   `json:"level,omitempty" ts:"Level"` // of values that stand out
	Why   string   `json:"why,omitempty"`              // there is none
}

// value is the text of one field.
func value(s *metric.Shown) Value {
	v := Value{Text: s.Text(), Of: s.Of()}
	if ratio, ok := s.Ratio(); ok {
		ratio = math.Round(ratio*1000) / 1000
		v.Ratio = &ratio
	}
	if s.Level > model.Fine {
		v.Level = s.Level.String()
	}
	if !s.Known() {
		v.Why = words.Escape(s.Why)
	}
	return v
}

// values are the fields that views of many devices show. What a device is does
// not change: a page of its own has it.
func values(b metric.Board, d *model.Device) map[string]Value {
	out := map[string]Value{}
	for _, f := range metric.Headed() {
		if f.Section != metric.Identity && f.Section != metric.Firmware {
			s := b.Value(f, d)
			out[f.Name] = value(&s)
		}
	}
	return out
}
