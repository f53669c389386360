// Package chipread reads the memory of one chip, once, in a process of its own:
// the telemetry table of its firmware and, where that was asked for and is safe,
// the accounts of dispatch and Ethernet cores.
//
// ttmond starts itself again with the hidden flag Flag, one process per chip and
// sample, and hands it a Request; Main answers with a Response and exits. The
// process maps chip memory read-only, has no capability, and a list of system
// calls that ends it when it leaves it. It sends no firmware message and writes
// to no chip. internal/source/firmware decides whether and when it runs, and
// never waits for it without a deadline: a load that a chip does not answer
// cannot be interrupted.
package chipread
