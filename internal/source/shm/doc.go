// Package shm reads the statistics regions in which tt-metal accounts for
// device memory: /dev/shm/tt_device_<chip id>_memory, one file per opened
// chip, layouts 1 to 4.
//
// It is a source in the data flow: collect calls Reader.Read at its cadence,
// and joins what the Sweep claims (Sweep.Claims) with what others do. Processes
// are read through internal/hostfs/proc, whose reader the whole collection shares.
//
// # What can be trusted in a region
//
// Not the summary fields of the writer: header totals keep the bytes of killed
// processes and wrap, the reference count leaks, the per-chip table is never
// reduced. So ttmon trusts only the per-process slots, and a slot only while
// its process is proved to be alive: it maps the file, and its innermost
// namespace pid is the slot's pid. What remains in slots of dead processes is a
// stale slot, listed and never counted. What cannot be determined from outside is a
// missing figure with a reason, or one with a doubt.
//
// # How a slot is judged
//
//	       a pid appears              one process has the pid and maps the region
//	free ────────────────► undecided ────────────────────────────────────────────► live
//	  ▲                      │ │ │ │   several do: they share region and pid
//	  │                      │ │ │ └─────────────────────────────────────────────► contested
//	  │ the pid is cleared,  │ │ │     none does, and all can be seen
//	  │ whatever the state   │ │ └───────────────────────────────────────────────► dead
//	  │                      │ │       none that we may read does
//	  └───────────────────── │ └─────────────────────────────────────────────────► unseen
//	                         │
//	                         └ no time to read all processes: judged again
//	                           in the next sweep
//
// A verdict is undecided again
//
//   - of live and contested: when an owner ends or no longer maps the region, or
//     the slot's pid or name changes;
//   - of dead and unseen: when anything in the slot changes, a process attaches or
//     detaches, a process with that pid maps the region, or after 30 seconds.
//
// Only live and contested slots are counted, contested ones for their owners
// together. A dead slot is stale. A live slot whose owner found it as a dead
// process of the same pid had left it is counted less what that one left (the
// baseline in judge.go). A live slot that is cleared or reused while its owner
// still maps the region was wiped by another writer: what the owner holds is
// unknown from then on.
//
// # What is cached, and for how long
//
// A sweep without changes is one stat per /dev/shm directory, one pread per
// region, and one poll of the pidfds of all processes known to map a region.
// Everything else is done when something changed:
//
//   - directory listings, until the directory's mtime moves;
//   - a region's decoded result, until one of its bytes changes, a process that
//     maps it or owns a slot dies, or the list of device users changes; where
//     only the figures of live slots changed, these slots alone are decoded, and
//     none is judged;
//   - what a process maps (the costly read of /proc/<pid>/maps), per pid and
//     start time, until the header or the slot table of a region that concerns
//     it changes (every attach and detach writes there), and for at most five
//     seconds, because exec and a forked child's exit write nowhere;
//   - the verdict that a slot's owner is dead, until that slot changes or
//     a process attaches or detaches, and for at most thirty seconds;
//   - the release behind a libtt_metal.so, per inode, while a known process maps
//     it.
//
// All of /proc is scanned only for a slot whose pid matches no known process
// (reading every /proc/<pid>/status), and, at most once a second, for processes
// that must be attached and have no slot (reading /proc/<pid>/maps of every
// process that could open the region). Both stop after 0.4 s; what is undecided
// then stays so until the next sweep.
//
// # What cannot be known
//
// Releases from 0.72.0 on account for one thread only; a graph capture that
// begins before the device is opened ends the accounting of its process, and
// nothing shows it. Figures of circular buffers may be old: updates that come
// within 100 ms are dropped for good. A process that was given the pid of a
// dead one counts on top of its bytes; they are taken off if the slot was seen
// at rest in between, and otherwise the figure is missing. What a layout 4
// writer in another container erased is known only to a Reader that read it
// before.
//
// # Nothing is written
//
// Regions are opened O_RDONLY|O_NOFOLLOW|O_NOATIME and read with pread, never
// mapped: a file that shrinks under the reader is a short read, not a SIGBUS.
// Remove, for an explicit request of the user, is the only exception.
package shm
