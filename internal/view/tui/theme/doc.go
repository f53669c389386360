// Package theme holds how the styles of cells look: colours from a file, one
// of those that ttmon ships or one of the user's.
//
// It stands between cells, which say what they mean, and what shows them:
// the terminal (package tui) and pictures (package picture).
package theme
