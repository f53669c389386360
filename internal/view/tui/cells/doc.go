// Package cells is the paper the terminal screens are drawn on: a grid of
// characters with the meaning of each (a Style), areas cut out of it, text,
// bars and braille dots.
//
// It stands between the screens (top, mem), which draw every frame whole, and
// the loop in tui, which sends the terminal only the cells that changed. It
// knows no terminal and no colour: a Theme, elsewhere, turns meaning into
// looks. Golden tests compare grids.
package cells
