// Package ledgerfile reads the ledgers in which libttmon keeps the state of a
// process's allocators of device memory, and writes one for a Go program that
// has such an allocator (Reporter). The layout is explained in docs/ledger.md;
// the C header ttmon_ledger.h is its definition.
//
// It stands at the edge of the data flow and depends on nothing of ttmon, so
// that other programs may import it: internal/source/track builds on it.
//
// A ledger is written by the process whose memory it tells of, at any moment,
// under nobody's control but its own. So nothing in it is believed before it
// has been checked: what cannot be true is an error or is left out, and no
// input makes the reader fail in another way. Who the writer is, and whether it
// still lives, is not read from the file but asked of the kernel (Holder).
package ledgerfile
