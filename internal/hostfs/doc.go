// Package hostfs is the one way ttmon reads the host: paths below a root,
// plain reads that never wait on Go's poller, errors told apart, and reads
// that the kernel may block for seconds kept out of this process.
//
// Everything that reads the host builds on it: the sources, proc, collect. It
// never writes, and it refuses to open a device node (anything below /dev), so
// that no source can wake a chip by mistake.
package hostfs
