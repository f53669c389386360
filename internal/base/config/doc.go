// Package config is the file in which people keep how ttmon looks and
// behaves: $XDG_CONFIG_HOME/ttmon/config.toml. It is edited by hand, and the
// setup screen (F2) writes the same file, leaving comments and order alone.
//
// It stands before everything else: cmd reads it and hands the parts to the
// views. Defaults come first, then the file, then TTMON_* variables, then
// flags. Unknown keys are errors that name the line.
package config
