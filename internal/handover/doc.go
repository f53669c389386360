// Package handover moves open descriptors from a daemon to its successor, so
// that whoever is connected notices nothing: over a Unix socket from the old
// process to the new one, or through systemd, which keeps them meanwhile.
//
// It stands beside the data flow. What the descriptors are is told by their
// names; state that is not a descriptor travels as one, in a memfd.
package handover
