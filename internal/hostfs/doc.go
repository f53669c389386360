// Package hostfs is the only way ttmon reads the host: paths below a root,
// plain reads that never wait on Go's poller, classified errors, and reads that
// the kernel may block for seconds in another process.
//
// Everything that reads the host builds on it: the sources, proc, collect. It
// never writes, and it refuses to open device nodes (anything below /dev), so
// that no source can wake a chip by mistake.
package hostfs
