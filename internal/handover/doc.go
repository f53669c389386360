// Package handover moves open descriptors from a daemon to its successor, so
// that connected clients notice nothing: over a Unix socket from the old
// process to the new one; and after a crash through systemd, which has kept
// them meanwhile.
//
// Descriptors are identified by their names; all other state is streamed on a
// pipe.
package handover
