// Package procfs tells who uses the devices of a host: which processes hold
// a device node, and what /proc knows about each of them.
//
// It is a polled source. The kernel driver's list of openers (read by
// source/kmd) goes into Resolve, which turns the raw numbers into
// model.Process values: duplicates collapsed, exited openers told from the
// holders that inherited their descriptors, numbers of foreign pid namespaces
// shown as hidden. Where the driver offers no list, Holders scans /proc/*/fd.
//
// Nothing here needs privilege to work. What may not be looked at comes back
// as denied and is counted in Coverage; it is never shown as gone or as zero.
// No device node is ever opened: descriptors are read as links and, at most,
// asked for their device number with statx.
//
// A Reader keeps what it learned between calls (CPU times, descriptors,
// command lines) and belongs to one goroutine.
package procfs
