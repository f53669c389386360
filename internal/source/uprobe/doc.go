// Package uprobe watches the allocators of unmodified tt-metal processes
// through the kernel: every block that any thread takes or gives back, in any
// container, with the exact size of each pool.
//
// Its place in the flow: a push source of ttmond. A small BPF program sits on
// the entries of a few functions of libtt_metal.so; what they are called with
// arrives in a ring buffer, and accounts.go turns it into internal/book/blocks.
//
//	perf mmap records, /proc ─► library ─► uprobe.multi, once per file
//	probe hit ─► ring buffer ─► event ─► accounts ─► blocks.Process
//
//	publish_pages ─► ring of pages ─► pages.Process: the programs that ran on its chips
//
// A watched process is stopped for about a microsecond at each hit, and for
// nothing else. From one that hits too often ttmond detaches. Only where a request fails does
// the kernel's part read more: the lines of Python that the thread is in (CPython
// 3.10 to 3.12), from its frames as they lie in memory.
package uprobe
