// Package proc is the only reader of /proc: it describes processes, what they
// run and map, and which device nodes they hold.
//
// It is built on hostfs; the sources and collect use it to read processes. The
// kernel driver's list of openers (read by source/kmd) goes into Resolve, which
// turns the raw numbers into model.Process values: duplicates collapsed, exited
// openers distinguished from the holders that inherited their descriptors,
// numbers of foreign pid namespaces shown as hidden. Where the driver offers no
// list, /proc/*/fd is scanned.
//
// Nothing here needs privilege to work. What cannot be read for lack of rights
// is reported as denied and is counted in Coverage; it is never shown as gone
// or as zero. No device node is ever opened: descriptors are read as links and,
// at most, their device number is read with statx.
//
// A Reader caches what it reads between calls (CPU times, descriptors, command
// lines) and belongs to one goroutine.
package proc
