// Package chipread reads the memory of chips, once, in a process of its own:
// the telemetry table of its firmware and, where that was asked for and is safe,
// the accounts of dispatch and Ethernet cores.
//
// ttmond starts itself again with the hidden flag Flag and hands it up to MaxChips
// Requests; Main answers each with a Response, in order, and exits. Starting a
// process costs more than what it does: one for each chip would take 3 % of a core
// on a host of 32. The process maps chip memory read-only, has no capability, and a list of system
// calls that ends it when it leaves it. It sends no firmware message and writes
// to no chip. internal/source/firmware decides whether and when it runs, and
// never waits for it without a deadline: a load that a chip does not answer
// cannot be interrupted.
package chipread
