package pagejson

import (
	"math"
	"time"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/words"
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

// Facts is all that is known of a device, in sections, as smi -q and top have
// it.
type Facts struct {
	Schema   string    `json:"schema"` // ttmon.facts/1
	Sections []Section `json:"sections"`
}

// Section is a part of Facts.
type Section struct {
	Title string `json:"title"`
	Facts []Fact `json:"facts"`
}

// Fact is a field with its value.
type Fact struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Known bool     `json:"known"`
	Text  string   `json:"text"`  // in full: with the reason where there is none
	Limit *float64 `json:"limit"` // what it is measured against, in the unit of /v1/metrics
	Level string   `json:"level,omitempty" ts:"Level"`
	// Time is set of what is a time: who reads it has a zone of their own.
	Time *time.Time `json:"time,omitempty"`
}

// FactsOfProcess says what a process is and does on its host.
func FactsOfProcess(s *model.Snapshot, p *model.Process) *Facts {
	section := Section{Title: "What it is", Facts: []Fact{}}
	fields, values := metric.ReportProcess(s, p)
	for i, f := range fields {
		x := Fact{Name: f.Name, Title: f.Title, Known: values[i].Known(), Text: f.Full(values[i])}
		if x.Known && f.As == metric.Date {
			at := time.Unix(int64(values[i].Num), 0).UTC()
			x.Time = &at
		}
		section.Facts = append(section.Facts, x)
	}
	if p.State != model.Running {
		section.Facts = append(section.Facts, Fact{Name: "state", Title: "State", Known: true, Text: string(p.State), Level: model.Warning.String()})
	}
	if who := words.Reach(p); who != "" {
		section.Facts = append(section.Facts, Fact{Name: "reach", Title: "Started By", Known: true, Text: who})
	}
	return &Facts{Schema: "ttmon.facts/1", Sections: []Section{section}}
}

// FactsOf says everything about a device of a snapshot.
func FactsOf(s *model.Snapshot, d *model.Device) *Facts {
	b := metric.Show(s, assess.Of(s))
	out := &Facts{Schema: "ttmon.facts/1", Sections: []Section{}}
	for _, title := range metric.Sections() {
		section := Section{Title: string(title), Facts: []Fact{}}
		for _, shown := range b.Report(title, d) {
			v := value(&shown)
			f := Fact{Name: shown.Field.Name, Title: shown.Field.Title, Known: shown.Known(), Text: shown.Full(), Level: v.Level}
			if limit, ok := shown.LimitInUnit(); ok {
				f.Limit = &limit
			}
			section.Facts = append(section.Facts, f)
		}
		if len(section.Facts) > 0 {
			out.Sections = append(out.Sections, section)
		}
	}
	return out
}
