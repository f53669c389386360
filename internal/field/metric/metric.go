// Package metric is the one table of what can be asked about a device or a
// process: its name, unit, help, place in the JSON contract, Prometheus name, the
// names nvidia-smi has for it, and how to get it out of a snapshot.
//
// It stands between model and the views. --query-device, dmon, pmon, their help,
// docs/fields.md and the exporter are all driven by it; smi, its long report, top,
// the charts and the page take headings, formats and limits from it. So a field is
// added in one place, means the same everywhere, and is written with the same digits.
package metric

import (
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Kind is what a field holds.
type Kind uint8

// The kinds.
const (
	Text    Kind = iota // a name, a version, a list
	Gauge               // a number that goes up and down
	Counter             // a number that only grows, until it starts over
	Bool                // yes or no
)

func (k Kind) String() string { return [...]string{"text", "gauge", "counter", "yes/no"}[k] }

// Field is one thing to ask about a subject.
type Field[Subject any] struct {
	Name     string // dotted, the most general part first: "pcie.link.gen.current"
	Kind     Kind
	Unit     string  // as it is printed: "MiB", "W"; empty for none
	Per      float64 // how many of the JSON contract's unit make one Unit; 0 means 1
	Decimals int     // how many are printed
	Rate     bool    // known only between two samples
	Foreign  bool    // only for scripts written for nvidia-smi: no board has it
	Help     string

	// How views show it. Nothing of this is in --query.
	Head    string         // above a column, and beside the value where room is short: "Temp"
	Width   int            // cells of that column; 0: what the others leave
	Rank    int            // when room is short the column with the greatest goes first; 0: it stands nowhere by itself
	Title   string         // in reports and above charts: "Core Power"; empty: reports leave it out
	Section Section        // of reports
	As      Form           // how its numbers are written; ByUnit is right for most
	Limit   string         // name of the field that it is measured against
	Fact    model.FactKind // by which the judge says how much it matters
	Sparse  bool           // reports leave it out where it is missing
	// OfDevice: it is about what a process has of devices, so it can be said of one of
	// them alone.
	OfDevice bool

	JSON     string // path below the device or process; "[]" stands for the entry asked about
	Synonyms []Synonym
	Prom     Prom
	Get      func(*model.Snapshot, Subject) Value // in the JSON contract's unit
}

// Synonym is another name for a field, mostly nvidia-smi's.
type Synonym struct {
	Name string
	Bare bool // printed without the unit, as nvidia-smi prints it
}

// Prom is how a field appears in Prometheus. The zero Prom: not by itself.
type Prom struct {
	Name   string
	Type   string  // gauge or counter
	Labels string  // constant ones: `pool="dram"`
	Factor float64 // from the JSON contract's unit to Prometheus' base unit; 0 means 1
	// Bound is the companion that tells how the figure is to be read: 0 exact,
	// 1 at least, 2 unsure. Empty for what is never doubtful.
	Bound string
	// Chip is the family of the same figure for each chip of a board that has
	// several. A name of its own: a sum over Name counts every byte once, and
	// so does a sum over Chip. Empty for what is known of the device only.
	Chip string
}

// Device is a field of a device, Process one of a process over all its devices, App
// one of a process on a device.
type (
	Device  = Field[*model.Device]
	Process = Field[*model.Process]
	App     = Field[Use]
)

// Use is a process and what it has of one device.
type Use struct {
	Process *model.Process
	Device  *model.DeviceUse
}

// Value is a reading whose type no longer matters.
type Value struct {
	Status  model.Status
	Nominal bool
	Bound   model.Bound // of memory figures
	Level   model.Level // how much it matters, where the field itself says so
	Why     string
	None    bool    // there is none, and none is expected: no reason belongs beside it
	Num     float64 // of gauges and counters; 1 or 0 of bools
	Text    string  // of texts; raw: escape it before it reaches a terminal
	Short   string  // of texts that have a shorter form, where room is short
	List    []int   // of lists of devices, what Text is made of
}

// Known reports whether there is a value.
func (v Value) Known() bool { return v.Status == model.Known }

// Format writes a known value as --query prints it, without its unit and mark:
// numbers with the field's decimals, bools as yes and no. What is not nothing is
// never written as 0.
func (f *Field[S]) Format(v Value) string {
	switch f.Kind {
	case Text:
		return v.Text
	case Bool:
		if v.Num != 0 {
			return "yes"
		}
		return "no"
	default:
		n := v.Num
		if f.Per != 0 {
			n /= f.Per
		}
		return decimal(n, f.Decimals)
	}
}

// decimal writes n with a number of decimals, or with as many as it takes to
// show that there is something.
func decimal(n float64, decimals int) string {
	s := strconv.FormatFloat(n, 'f', decimals, 64)
	if n > 0 && strings.Trim(s, "0.") == "" {
		digit := strconv.FormatFloat(n, 'g', 1, 64)
		n, _ = strconv.ParseFloat(digit, 64)
		s = strconv.FormatFloat(n, 'f', -1, 64)
	}
	return s
}

// Column is a field under the name by which it was asked for.
type Column[S any] struct {
	*Field[S]
	Title string // the name asked for
	Unit  string // the unit under that name
}

// Find looks a name or synonym up in a table.
func Find[S any](table []Field[S], name string) (Column[S], bool) {
	for i := range table {
		f := &table[i]
		if f.Name == name {
			return Column[S]{f, name, f.Unit}, true
		}
		for _, s := range f.Synonyms {
			if s.Name == name {
				c := Column[S]{f, name, f.Unit}
				if s.Bare {
					c.Unit = ""
				}
				return c, true
			}
		}
	}
	return Column[S]{}, false
}

// Names lists all names of a table, synonyms included, for suggestions and
// completion.
func Names[S any](table []Field[S]) []string {
	var names []string
	for i := range table {
		names = append(names, table[i].Name)
		for _, s := range table[i].Synonyms {
			names = append(names, s.Name)
		}
	}
	return names
}
