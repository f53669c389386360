// Package ledgerfile reads the ledgers in which libttmon keeps the state of a
// process's allocators of device memory, and writes one for a Go program that
// has such an allocator (Reporter). The layout is explained in docs/ledger.md;
// the C header ttmon_ledger.h is its definition.
//
// It depends on nothing of ttmon, so that other programs may import it;
// internal/source/track is built on it. A ledger is written by the process
// whose memory it describes, at any moment, under no control but its own. So
// nothing in it is trusted before it has been checked: what cannot be true is
// an error or is left out, and no input makes the reader fail in another way.
// Which process is the writer, and whether it still runs, is not read from the
// file: the kernel says it (Holder).
package ledgerfile
