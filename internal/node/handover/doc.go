// Package handover moves open descriptors from a daemon to its successor, so
// that connected clients notice nothing: to the program that is executed in its
// place; over a Unix socket to a process that keeps connections while no daemon
// runs, and back; and after a crash through systemd, which has kept them
// meanwhile.
//
// Descriptors are identified by their names; all other state is in a file in
// memory that is one of them.
package handover
