// Package recording is the file in which ttmon keeps all that it knew about a
// stretch of time: snapshots, events, every allocation and free of programs
// that tell them, requests for memory that failed, on request every program that
// ran on a chip, and the lines that a program printed.
//
// Its place in the flow: ttmon record, ttmon run --record and ttmond write it;
// ttmon replay, diff and export read it. It stands where a source of snapshots
// stands for the viewer.
//
// # The file
//
// A file header, then blocks, only ever appended. All numbers are
// little-endian.
//
//	file header   "TTMONREC", version u32 (1), bytes of this header u32 (24), a random number u64
//	block         40 bytes: "TTRB", flags u32 (1: key, 2: without events), bytes of the payload u32,
//	              bytes of it decompressed u32, first and last time i64 (Unix ns),
//	              CRC-32C of the 32 bytes before and the payload u32, number u32;
//	              then the payload, a zstd frame
//
// A block stands for itself: it is written by one write, its checksum covers
// it, and no block's compression needs another's. So a file can be read while
// it grows, and what a killed writer or a full disk leaves is good up to the
// last whole block. A file appears under its name with its header whole.
//
// A block whose checksum is wrong is passed over, and so is all up to the next key
// block; where a header leads astray, the next whole block is searched (resync.go).
// A reader of records sees that as an event and as the end of all processes, and
// gets what the key block restates as if it happened then.
//
// There is no index to be lost: the headers of the blocks are one, each says
// where the next is and which time it holds. Times never go back in a file.
//
// # Records
//
// A payload is a sequence of records: kind (uvarint), nanoseconds since the
// record before (uvarint; the first counts from the block's first time), length
// (uvarint), body. Kinds that a reader does not know are passed over: they may
// be added. What changes the meaning of one makes version 2.
//
// A snapshot is the JSON ttmon.snapshot/1. What it repeats of the one before is found
// by the compression, where both are in one block. Definitions (what process, which list of blocks,
// which place in a program) are JSON and have numbers; allocations and frees
// refer to the numbers and are binary. So are programs that ran, many in a record
// that needs no other (programs.go).
//
// # Seeking
//
// A key block begins with all that holds at its start: a whole snapshot, the
// definitions, every live block; the record "start" ends that part. To know a
// moment, begin at the last key block before it. There is one at least every
// minute, mostly every 20 seconds, unless the state is so large that the file would consist of it.
package recording
