// Package top is ttmon top: devices, charts over time and the processes that
// use them, on one screen that adapts to its size.
//
// It stands at the end of the data flow. State is everything on the screen;
// Update takes in snapshots, keys and the mouse and returns effects; Draw draws
// the state. What a terminal, a process or a file is, it does not know: the
// loop in tui and the Actions carry effects out.
package top
