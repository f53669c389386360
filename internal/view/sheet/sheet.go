// Package sheet is the step between what is shown and how: a title and parts (facts,
// a table, the map of a bank, sentences). What has a page of its own has one function
// that makes its Sheet; a Medium draws any Sheet. Neither knows the other.
//
// Lines draws for text and for screens, HTML writes a file to be sent, and as JSON a
// sheet goes to the page, which has a component for each part.
package sheet

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Sheet is what there is to show about one thing.
type Sheet struct {
	Title  string `json:"title"`
	Status *Note  `json:"status"` // how it is, in a sentence; null: nothing to say
	Parts  []Part `json:"parts"`
}

// Part is a piece of a sheet: one of what it has.
type Part struct {
	Title  string `json:"title"`
	Folded bool   `json:"folded,omitempty"` // details: text leaves them out, a page folds them
	Below  bool   `json:"below,omitempty"`  // it is a piece of the part before it
	Pairs  []Pair `json:"pairs,omitempty"`
	Table  *Table `json:"table,omitempty"`
	Map    *Map   `json:"map,omitempty"`
	Notes  []Note `json:"notes,omitempty"`
}

// Medium draws sheets. It is an interface of one method for each part, so that the
// compiler names the media that lack a new one.
type Medium interface {
	Head(*Sheet)
	Begin(*Part) // of every part, before what it has
	Pairs([]Pair)
	Table(*Table)
	Map(*Map)
	Notes([]Note)
	End(*Part)
}

// Draw shows the sheet in a medium. Parts that have nothing are left out.
func (s *Sheet) Draw(m Medium) {
	m.Head(s)
	for i := range s.Parts {
		p := &s.Parts[i]
		if len(p.Pairs)+len(p.Notes) == 0 && p.Map == nil && (p.Table == nil || len(p.Table.Rows) == 0) {
			continue
		}
		m.Begin(p)
		if len(p.Pairs) > 0 {
			m.Pairs(p.Pairs)
		}
		if p.Table != nil && len(p.Table.Rows) > 0 {
			m.Table(p.Table)
		}
		if p.Map != nil {
			m.Map(p.Map)
		}
		if len(p.Notes) > 0 {
			m.Notes(p.Notes)
		}
		m.End(p)
	}
}

// Value is a fact as people read it, and what programs need beside that.
type Value struct {
	Text  string      `json:"text"` // "≥62 %", or the word for why there is none; safe for a terminal
	N     *float64    `json:"n"`    // to sort by and to draw, in the unit of its field; null: a text, or not known
	Level model.Level `json:"level,omitempty"`
	Gone  bool        `json:"gone,omitempty"` // there is none
	Why   string      `json:"why,omitempty"`  // there is none, or it is not exact
	Note  string      `json:"note,omitempty"` // details, where a pointer rests on it
	Time  *time.Time  `json:"time,omitempty"` // of what is a time: who reads it has a zone of their own
	Link  string      `json:"link,omitempty"` // of what has a page of its own: its path
}

// Text is a value that is a text.
func Text(s string) Value { return Value{Text: s} }

// Pair is a fact with its name.
type Pair struct {
	Name  string   `json:"name"`
	Value Value    `json:"value"`
	Field string   `json:"field,omitempty"` // its name in the table of fields
	Limit *float64 `json:"limit,omitempty"` // what it is measured against, in the unit of /v1/metrics
}

// Note is a sentence, and for programs the code of what it says.
type Note struct {
	Code  string      `json:"code,omitempty"`
	Level model.Level `json:"level,omitempty"`
	Text  string      `json:"text"`
}

// Table is a list of things.
type Table struct {
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"`
	More    string   `json:"more,omitempty"` // what is said below of rows that are left out
}

// Column is a column of a table.
type Column struct {
	Name  string `json:"name"`
	Head  string `json:"head"`
	Help  string `json:"help,omitempty"`
	Right bool   `json:"right,omitempty"` // numbers
	Rank  int    `json:"rank,omitempty"`  // when room is short the greatest goes first; 0 never goes
	Least int    `json:"-"`               // cells that hold every value
	Most  int    `json:"-"`               // cells where a text is cut; 0: it is not
	Rest  bool   `json:"-"`               // takes the room that is left, and is cut there
	Bar   bool   `json:"bar,omitempty"`   // its values are shares of the largest, drawn as bars
}

// Row is one thing.
type Row struct {
	Color int     `json:"color,omitempty"` // number of its colour in the sheet's map, from 1; 0: none
	Cells []Value `json:"cells"`
}

// Largest is the largest number of a column.
func (t *Table) Largest(column int) (most float64) {
	for _, r := range t.Rows {
		if n := r.Cells[column].N; n != nil {
			most = max(most, *n)
		}
	}
	return most
}
