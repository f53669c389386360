// Package track reads the ledgers that libttmon keeps in processes: every
// block of their allocators of device memory, exactly, with tags and call
// sites. It is a source in the data flow; what it reads it hands on in the
// terms of internal/book/blocks.
//
// # Who speaks
//
// Anybody may put a file into /dev/shm. A ledger speaks for the process that
// has it locked, which the kernel tells (lib/ledgerfile.Holder), whatever is
// written in it, and for no other. The lock is not inherited and ends with its
// process, so a ledger without a lock is what a dead one left. A
// program that closes all its descriptors loses the lock and lives on: before a
// ledger counts as left behind, the process that it names is asked whether it
// maps the file.
//
// # What is read
//
// The /dev/shm of the host and those of the processes that the caller names
// (containers have their own), where they are memory file systems. A sweep in
// which nothing happened is, per ledger, one question for the lock and one read
// of its header. How many ledgers a user can have is bounded, and so is, where
// the caller says so, how many blocks are in them.
//
// # What a dead process left
//
// It is reported once. Its file is removed by a process with permission: its user's ttmon, or
// ttmond. Ledgers of a `ttmon run` that is still there are left to it.
package track
