// Package kmd reads what the Tenstorrent kernel driver shows: the chips, their
// telemetry, their PCIe traffic and the processes that have them open.
//
// It is a poll source: collect calls Reader.Read once a tick. Everything
// comes from sysfs, hwmon and procfs; a device node is never opened, so no
// chip is woken. All of the driver's quirks are decoded here and nowhere
// else: sentinels (decode.go), counters (counter.go), which release offers
// which file (attr.go), trouble (state.go).
//
// Reading can harm: telemetry and counters are registers that the driver reads
// over the bus, and hosts have rebooted from such reads at a chip that had left
// it. So such a chip is not read (rests in state.go), and neither is one that a
// reset is under way for, until its configuration space answers. That is asked
// by current_link_width, which the kernel reads with a configuration cycle, as
// it does for empty slots whenever it scans the bus: the port above answers for
// a chip that is not there, with ones (a width of 63), and nothing waits for the
// chip. The file "config" would show the same, but is not opened: it is what
// tools write to chips with, and a read of it waits for a reset to end.
package kmd
