// Package daemon is what ttmond and ttmon-server do alike: the log, the
// configuration file, signals, the limits of memory and cores.
//
// It is for the programs' main packages and what they construct; it knows
// nothing about boards.
package daemon
