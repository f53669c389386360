// Package words says in text what a model.Snapshot holds: numbers with their
// units, the word for a reading that is missing, foreign names made safe for a
// terminal, and trouble as sentences.
//
// It stands between model and all that speaks of it, to people (text, tui) and to
// programs (wire, events): they say the same thing in the same words. It is no view:
// it draws nothing and knows no colour.
//
// Numbers come in two forms. The plain form (Bytes, Rate, Duration) is for
// sentences and reports. The column form (BytesColumn, RateColumn, …) always
// takes the same number of cells, so that a column never moves while its
// values change.
package words
