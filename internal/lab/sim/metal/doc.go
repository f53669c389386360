// Package metal plays tt-metal processes: programs that account for device
// memory in /dev/shm exactly as the writers of layouts 2, 3 and 4 do, their
// mistakes included, steered by a small script.
//
// It is a part of the simulated host. What it plays is what the real ttnn
// cannot be made to do on request: die at a given point, take over the pid of
// a dead process, share a region between containers, fill all 64 slots, run a
// release that does not exist yet. Nothing of it is linked into ttmon or
// ttmond, and the offsets here are written down apart from those of the
// reader in source/shm, so that a mistake in either shows.
//
// A workload knows what it really holds, whatever its region says: every
// answer carries that truth for tests to compare with.
//
// Three ways in: Main is the program (ttmon-sim metal …), Start runs it as a
// process and talks to it, and Workload is the thing itself.
package metal
