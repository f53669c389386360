// Package tui runs a screen on a terminal: it turns keys, mouse, window
// changes and new snapshots into events, hands them to an App, carries out the
// effects the App answers with, and sends the terminal the cells that changed.
//
// It stands at the end of the data flow, between a Source of snapshots and
// the terminal. The screens are in top, bank, fleet and ops. Their Update does
// no I/O, knows no clock and starts nothing: what it wants done it returns as
// effects, so that tests drive it by hand. Draw draws the whole state; when
// the cells are the same as before, nothing is written.
package tui
