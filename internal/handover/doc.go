// Package handover moves open descriptors from a daemon to its successor, so
// that whoever is connected notices nothing: over a Unix socket from the old
// process to the new one; and after a crash through systemd, which has kept
// them meanwhile.
//
// It stands beside the data flow. What the descriptors are is told by their
// names; what is not a descriptor is streamed on a pipe.
package handover
