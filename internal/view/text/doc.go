// Package text turns a model.Snapshot into what ttmon smi prints: the table, the
// list, the long report, CSV, the dmon and pmon streams, and the snapshot in the
// official tt-smi's shape.
//
// It is a view: it reads snapshots and writes bytes, and knows neither files nor
// terminals. Everything appends to a buffer that the caller owns, so that a screen
// which is drawn again and again costs no garbage.
package text
