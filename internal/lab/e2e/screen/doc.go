// Package screen holds no code, only tests: the real ttmon on a real terminal
// (tmux), to see that it gives the terminal back whatever ends it.
package screen
