// Package kmd reads what the Tenstorrent kernel driver shows: the chips, their
// telemetry, their PCIe traffic and the processes that have them open.
//
// It is a poll source: collect calls Reader.Read once a tick. Everything
// comes from sysfs, hwmon and procfs; a device node is never opened, so no
// chip is woken. All of the driver's quirks are decoded here and nowhere
// else: sentinels (decode.go), counters (counter.go), which release offers
// which file (attr.go), trouble (state.go).
package kmd
