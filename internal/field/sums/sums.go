// Package sums is the few figures of a host that the first screen of a fleet
// asks for: how many devices are in which condition, the hottest, power, memory,
// how busy they are, who uses them.
//
// An engine that evaluates the recording rules made from this table
// (packaging/prometheus/ttmon.sums.yml) holds some thirty series a host for it, and
// is asked for those alone. Elsewhere it is asked to add the devices up itself,
// which gives the same figures for more work.
package sums

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
)

// Sum is a figure of a host, made of those of its devices.
type Sum struct {
	// Of names the series that is added up: a family, or what is asked of it.
	Of string
	// By is how: sum, max, min or count.
	By string
	// Expr is what is added up; empty: the series Of itself.
	Expr string
	// Keep are labels, beside those of the host, that the figure is divided by.
	Keep []string
	// Drop are labels, beside those of all devices and processes, that it has not.
	Drop []string
}

// Name is that of the recorded series: host:tenstorrent_core_power_watts:sum.
func (s Sum) Name() string { return "host:" + family(s.Of) + ":" + s.By }

// family is the name in front of a selector's braces.
func family(selector string) string {
	name, _, _ := strings.Cut(selector, "{")
	return name
}

// dropped are the labels of devices and processes. All others belong to the
// host: host or instance, cluster, job, whatever an engine adds. So the rules do
// not depend on the label that distinguishes hosts.
var dropped = []string{
	"device", "pci", "chip_id", "chip", "board", "serial", "arch", "chips", "numa_node", "tray", "slot",
	"pid", "process",
}

// Rule is the expression of the recording rule.
func (s Sum) Rule() string {
	drop := slices.DeleteFunc(slices.Concat(dropped, s.Drop), func(l string) bool { return slices.Contains(s.Keep, l) })
	return s.By + " without (" + strings.Join(drop, ", ") + ") (" + s.expr() + ")"
}

func (s Sum) expr() string {
	if s.Expr != "" {
		return s.Expr
	}
	return s.Of
}

// Source is where an engine has the sums of hosts.
type Source uint8

// The sources.
const (
	Devices  Source = iota // no host has recorded sums: the engine adds up
	Recorded               // every host has them
	Both                   // some hosts have them
)

// Query is the PromQL of the figure for each host; label distinguishes hosts.
func (s Sum) Query(label string, from Source) string {
	by := " by (" + strings.Join(append([]string{label}, s.Keep...), ", ") + ") ("
	again := s.By
	if again == "count" {
		again = "sum"
	}
	recorded := again + by + s.recorded()
	switch from {
	case Recorded:
		return recorded + ")"
	case Devices:
		return s.By + by + s.expr() + ")"
	}
	fresh := " on (" + label + ") " + Fresh(label)
	return recorded + " and" + fresh + ") or " + s.By + by + "(" + s.expr() + ") unless" + fresh + ")"
}

// recorded selects the recorded series: with the labels of the selector that it
// was made of, which it still has.
func (s Sum) recorded() string {
	_, labels, ok := strings.Cut(s.Of, "{")
	if !ok {
		return s.Name()
	}
	return s.Name() + "{" + labels
}

// maxAge is how old a recorded sum may be. The rules are evaluated every 30 s; an
// engine returns the last value for five minutes after the rules stopped.
const maxAge = 2 * time.Minute

// interval is how often the rules are evaluated.
const interval = 30 * time.Second

// Fresh are the hosts whose sums were recorded lately, by these very rules: those of
// another release may lack what is asked for.
func Fresh(label string) string {
	return fmt.Sprintf("count by (%s) (time() - timestamp(%s{rules=%q}) < %d)", label, Marker, Version(), int(maxAge.Seconds()))
}

// Marker is recorded for each host after all sums, with the version of the rules.
const Marker = "host:tenstorrent_sums:info"

// Version identifies the rules: it changes with any of them.
func Version() string {
	var rules strings.Builder
	for _, s := range All() {
		rules.WriteString(s.Name() + " " + s.Rule() + "\n")
	}
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(rules.String())))
}

// Hosts is how many devices a host has.
func Hosts() Sum { return Sum{Of: "tenstorrent_devices", By: "sum"} }

// Instances is where the metrics of a host come from. It is one series a host by
// itself, and not recorded.
func Instances() Sum { return Sum{Of: "tenstorrent_devices", By: "count", Keep: []string{"instance"}} }

// Conditions is how many devices are in which condition, where there is one. A
// ttmond that does not report conditions yet reports states.
func Conditions() Sum {
	return Sum{
		Of: "tenstorrent_devices_in_condition", By: "sum", Keep: []string{"condition"},
		Expr: `tenstorrent_devices_in_condition > 0 or label_replace(tenstorrent_devices_in_state > 0 unless ignoring (state) sum without (condition) (tenstorrent_devices_in_condition), "condition", "$1", "state", "(.*)")`,
	}
}

// Simulated is 1 for a host that ttmon-sim made up.
func Simulated() Sum { return Sum{Of: "tenstorrent_simulated", By: "max"} }

// Workloads is how many processes of a workload use devices.
func Workloads() Sum {
	return Sum{Of: "tenstorrent_workload_processes", By: "sum", Keep: []string{"namespace", "pod", "container", "slurm_job", "unit"}}
}

// Users is who has processes with series of their own.
func Users() Sum {
	return Sum{Of: "tenstorrent_process_memory_used_bytes", By: "count", Keep: []string{"user"}}
}

// Links is how many Ethernet links to other hosts UMD has found on a host.
func Links() Sum {
	return Sum{Of: "tenstorrent_outside_link_info", By: "count", Drop: []string{"channel", "link_chip", "remote_chip", "remote_channel"}}
}

// LinksDown is each link to another host that this end reports as down: a series a
// link, of which there are few.
func LinksDown() Sum {
	return Sum{
		Of: "tenstorrent_outside_link_up", By: "min", Expr: "tenstorrent_outside_link_up == 0",
		Keep: []string{"device", "channel", "link_chip", "remote_chip", "remote_channel"},
	}
}

// Field is the sum of a field of devices.
func Field(name, by string) Sum {
	col := column(name)
	expr, _, ok := col.Query("1m")
	if !ok {
		panic("BUG: " + name + " has no series")
	}
	return Sum{Of: expr, By: by}
}

// Bound is the worst bound of a field's figures: that of their sum.
func Bound(name string) Sum {
	col := column(name)
	expr, ok := col.QueryBound()
	if !ok {
		panic("BUG: " + name + " has no bound")
	}
	return Sum{Of: expr, By: "max"}
}

func column(name string) metric.Column[*model.Device] {
	col, ok := metric.Find(metric.Devices(), name)
	if !ok {
		panic("BUG: there is no field " + name)
	}
	return col
}

// The fields that a line of a fleet shows.
const (
	Temperature = "temperature.asic"
	Power       = "power.draw"
	Used        = "memory.used"
	Size        = "memory.total"
	Busy        = "busy"
)

// All lists every sum, each once.
func All() []Sum {
	list := []Sum{
		Conditions(), Simulated(), Workloads(), Users(), Links(), LinksDown(),
		Field(Power, "sum"), Field(Power, "count"), Field(Used, "sum"), Field(Used, "count"), Bound(Used), Field(Size, "sum"),
		Field(Busy, "sum"), Field(Busy, "count"), Bound(Busy),
	}
	for _, f := range metric.Tagged(metric.InFleet) {
		list = append(list, Field(f.Name, "min"), Field(f.Name, "max"))
	}
	return append(list, Hosts())
}

// IsRecorded reports whether a sum is among All.
func IsRecorded(s Sum) bool {
	return slices.ContainsFunc(All(), func(x Sum) bool { return x.Of == s.Of && x.By == s.By })
}

// RuleFile is the sums as a rule file for Prometheus and Thanos Rule.
func RuleFile() []byte {
	var b strings.Builder
	b.WriteString("# Generated from internal/field/sums: make update\n" +
		"# What ttmon fleet and the fleet page ask for on the first screen: a few series a host.\n")
	fmt.Fprintf(&b, "groups:\n  - name: ttmon-sums\n    interval: %ds\n    rules:\n", int(interval.Seconds()))
	for _, s := range All() {
		fmt.Fprintf(&b, "      - record: %s\n        expr: '%s'\n", s.Name(), strings.ReplaceAll(s.Rule(), "'", "''"))
	}
	// The last: rules are evaluated in order, so where it is fresh all are.
	fmt.Fprintf(&b, "      - record: %s\n        expr: '%s'\n        labels: {rules: %q}\n", Marker, Hosts().Rule(), Version())
	return []byte(b.String())
}
