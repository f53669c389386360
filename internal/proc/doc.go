// Package proc is the one reader of /proc: what a process is, what it runs,
// what it maps and which device nodes it holds.
//
// It stands beside the sources, on hostfs: sources and collect ask it about
// processes. The kernel driver's list of openers (read by source/kmd) goes
// into Resolve, which turns the raw numbers into model.Process values:
// duplicates collapsed, exited openers told from the holders that inherited
// their descriptors, numbers of foreign pid namespaces shown as hidden. Where
// the driver offers no list, /proc/*/fd is scanned.
//
// Nothing here needs privilege to work. What may not be looked at comes back
// as denied and is counted in Coverage; it is never shown as gone or as zero.
// No device node is ever opened: descriptors are read as links and, at most,
// asked for their device number with statx.
//
// A Reader keeps what it learned between calls (CPU times, descriptors,
// command lines) and belongs to one goroutine.
package proc
