// Package grafana makes the dashboards that are shipped for Grafana, from the
// metric table, so that they ask for what there is.
//
// It stands beside view/prom. Only its test runs it, and writes
// packaging/grafana.
package grafana

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/field/metric"
)

type object = map[string]any

// units are Grafana's names of the base units at the end of metric names.
var units = map[string]string{
	"celsius": "celsius", "watts": "watt", "volts": "volt", "amperes": "amp", "hertz": "hertz", "rpm": "rotrpm", "bytes": "bytes",
	"seconds": "s", "ratio": "percentunit", "joules": "joule",
}

// Hosts that are scraped are told apart by the label instance, or by host where the
// scrape configuration sets one; hosts that send their samples (remote write) have
// host alone.

// ofHost is an expression about the chosen host; write makes it of a selector.
func ofHost(write func(selector string) string) string {
	return write(`host="$host"`) + " or " + write(`host="",instance="$host"`)
}

// series are those of one family of the chosen host, with more matchers behind a comma.
func series(name, more string) string {
	return ofHost(func(only string) string { return name + "{" + only + more + "}" })
}

// byHost are the series of a family of all hosts, each with a label host.
func byHost(name, matchers string) string {
	more := matchers
	if more != "" {
		more = "," + more
	}
	return name + `{host!=""` + more + `} or label_replace(` + name + `{host=""` + more + `}, "host", "$1", "instance", "(.+)")`
}

// choice is a variable whose values are those of a label in the result of an expression.
func choice(name, label, expr string, sort int) object {
	query := "query_result(count by (" + name + ") (" + expr + "))"
	return object{
		"name": name, "label": label, "type": "query", "datasource": source(), "refresh": 2, "sort": sort, "regex": "/" + name + `="([^"]+)"/`,
		"query": object{"query": query, "refId": name},
	}
}

// Sort orders of variables, as Grafana numbers them.
const (
	sortNumeric    = 3
	sortNaturalAsc = 7
)

// Node is the dashboard of one host, chip by chip.
func Node(table []metric.Device) []byte {
	devices := choice("device", "Device", series("tenstorrent_device_info", ""), sortNumeric)
	devices["multi"], devices["includeAll"], devices["current"] = true, true, object{"text": "All", "value": "$__all"}
	d := newDashboard("ttmon-node", "ttmon: one host", choice("host", "Host", byHost("tenstorrent_devices", ""), sortNaturalAsc), devices)
	d.stat("Devices", "none", `sum(`+series("tenstorrent_devices", "")+`)`)
	d.stat("Not ok", "none", `sum(`+series("tenstorrent_devices_in_condition", `,condition!="ok"`)+`)`)
	d.stat("Hottest chip", "celsius", `max(`+series("tenstorrent_asic_temperature_celsius", "")+`)`)
	d.stat("Power", "watt", `sum(`+series("tenstorrent_core_power_watts", "")+`)`)
	d.stat("DRAM used", "bytes", `sum(`+series("tenstorrent_memory_used_bytes", `,pool="dram"`)+`)`)
	d.stat("Alerts", "none", `count(`+series("ALERTS", `,alertstate="firing"`)+`) or vector(0)`)
	const chosen = `,device=~"$device"`
	seen := map[string]bool{}
	for _, f := range table {
		if f.Prom.Name == "" || seen[f.Prom.Name] || !drawn(f.Prom.Name) {
			continue
		}
		seen[f.Prom.Name] = true
		expr, legend := series(f.Prom.Name, chosen), "{{device}}"
		if f.Prom.Labels != "" {
			name, _, _ := strings.Cut(f.Prom.Labels, "=")
			legend += " {{" + name + "}}"
		}
		unit := unitOf(f.Prom.Name)
		if f.Prom.Type == "counter" {
			expr = ofHost(func(only string) string { return "rate(" + f.Prom.Name + "{" + only + chosen + "}[$__rate_interval])" })
			if unit == "bytes" {
				unit = "Bps"
			}
		}
		d.chart(title(f.Prom.Name), f.Help, unit, expr, legend)
	}
	d.chart("DRAM used of each chip", "of boards with more than one", "bytes", series("tenstorrent_chip_memory_used_bytes", chosen+`,pool="dram"`), "{{device}}{{chip}}")
	d.chart("Memory by workload", "who holds DRAM", "bytes", series("tenstorrent_workload_memory_used_bytes", chosen+`,pool="dram"`),
		"{{device}} {{namespace}} {{pod}} {{container}} {{slurm_job}} {{unit}}")
	d.chart("How exact the memory figures are", "0 exact, 1 at least that much, 2 unsure", "none", `max by (device) (`+series("tenstorrent_memory_used_bound", chosen)+`)`, "{{device}}")
	d.chart("Device conditions", "1 for each condition a device is in", "none", `(`+series("tenstorrent_device_condition", chosen)+`) == 1`, "{{device}} {{condition}}")
	d.chart("Throttled by", "1 for what throttles a device", "none", `(`+series("tenstorrent_device_throttle_reason", chosen)+`) == 1`, "{{device}} {{reason}}")
	d.chart("How long sources take", "the daemon about itself", "s", series("tenstorrent_collect_duration_seconds", ""), "{{collector}}")
	return d.bytes()
}

// Fleet is the dashboard of many hosts: the engine adds up.
func Fleet() []byte {
	// The engine may have alerts about other things.
	const ours = "Chip.*|Job.*|Allocation.*|Thermal.*|Memory.*|PCIe.*|Ethernet.*|GDDR.*|BoardsWithoutDriver|SourceFailing"
	d := newDashboard("ttmon-fleet", "ttmon: the fleet")
	d.stat("Hosts", "none", `count(count by (host, instance) (tenstorrent_devices))`)
	d.stat("Devices", "none", `sum(tenstorrent_devices)`)
	d.stat("Not ok", "none", `sum(tenstorrent_devices_in_condition{condition!="ok"})`)
	d.stat("Hottest chip", "celsius", `max(tenstorrent_asic_temperature_celsius)`)
	d.stat("Power", "watt", `sum(tenstorrent_core_power_watts)`)
	d.stat("Alerts", "none", `count(ALERTS{alertstate="firing",alertname=~"`+ours+`"}) or vector(0)`)
	d.chart("Devices by condition", "of all hosts, each in its worst", "none", `sum by (condition) (tenstorrent_devices_in_condition)`, "{{condition}}")
	const dram = `pool="dram"`
	each := func(name, help, unit, expr string) {
		d.chart(name, help+"; a click leads to the host", unit, `topk(20, `+expr+`)`, "{{host}}")
		d.leadToHost()
	}
	each("Hosts with chips that are not ok", "the worst 20", "none", `sum by (host) (`+byHost("tenstorrent_devices_in_condition", `condition!="ok"`)+`) > 0`)
	each("Hottest chip of each host", "the hottest 20", "celsius", `max by (host) (`+byHost("tenstorrent_asic_temperature_celsius", "")+`)`)
	each("Power of each host", "the 20 that draw most", "watt", `sum by (host) (`+byHost("tenstorrent_core_power_watts", "")+`)`)
	d.chart("DRAM used", "of all hosts; what is known", "bytes", `sum(tenstorrent_memory_used_bytes{`+dram+`})`, "used")
	each("DRAM used of each host", "the fullest 20", "percentunit",
		`sum by (host) (`+byHost("tenstorrent_memory_used_bytes", dram)+`) / sum by (host) (`+byHost("tenstorrent_memory_size_bytes", dram)+`)`)
	d.chart("PCIe traffic", "of all hosts", "Bps", `sum by (direction) (rate(tenstorrent_pcie_transferred_bytes_total[$__rate_interval]))`, "{{direction}}")
	d.chart("Resets and losses", "in the last hour", "none", `sum(increase(tenstorrent_device_resets_total[1h])) + sum(increase(tenstorrent_device_losses_total[1h]))`, "both")
	return d.bytes()
}

// drawn reports whether a family is worth a chart: limits, links and counts of
// what is fixed are not.
func drawn(name string) bool {
	for _, no := range []string{"_limit_", "_link_generation", "_link_width", "_memory_size_", "_estimate_"} {
		if strings.Contains(name, no) {
			return false
		}
	}
	return true
}

func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	if u := units[name[strings.LastIndexByte(name, '_')+1:]]; u != "" {
		return u
	}
	return "none"
}

// title is a metric's name for people: "asic temperature".
func title(name string) string {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "tenstorrent_"), "_total")
	if i := strings.LastIndexByte(name, '_'); i > 0 && units[name[i+1:]] != "" {
		name = name[:i]
	}
	return strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "_", " ")
}

func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

// dashboard is one being made, six boxes wide for numbers and two for charts.
type dashboard struct {
	body   object
	panels []object
	stats  int
	charts int
}

func newDashboard(uid, name string, variables ...object) *dashboard {
	list := append([]object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}, variables...)
	return &dashboard{body: object{
		"uid": uid, "title": name, "tags": []string{"tenstorrent", "ttmon"}, "editable": true, "schemaVersion": 39, "refresh": "30s",
		"time": object{"from": "now-3h", "to": "now"}, "templating": object{"list": list},
	}}
}

func (d *dashboard) add(p object, x, y, w, h int) {
	p["id"], p["datasource"], p["gridPos"] = len(d.panels)+1, source(), object{"x": x, "y": y, "w": w, "h": h}
	d.panels = append(d.panels, p)
}

func target(expr, legend string) []object {
	return []object{{"refId": "A", "datasource": source(), "expr": expr, "legendFormat": legend}}
}

func (d *dashboard) stat(name, unit, expr string) {
	d.add(object{
		"type": "stat", "title": name, "targets": target(expr, ""), "fieldConfig": object{"defaults": object{"unit": unit}, "overrides": []any{}},
		"options": object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "graphMode": "area"},
	}, 4*d.stats, 0, 4, 4)
	d.stats++
}

func (d *dashboard) chart(name, help, unit, expr, legend string) {
	d.add(object{
		"type": "timeseries", "title": name, "description": help, "targets": target(expr, legend),
		"fieldConfig": object{"defaults": object{"unit": unit, "custom": object{"spanNulls": false, "fillOpacity": 5}}, "overrides": []any{}},
		"options":     object{"legend": object{"displayMode": "table", "placement": "right", "calcs": []string{"lastNotNull", "max"}}, "tooltip": object{"mode": "multi"}},
	}, 12*(d.charts%2), 4+8*(d.charts/2), 12, 8)
	d.charts++
}

// leadToHost makes the series of the last chart links to the dashboard of their host.
func (d *dashboard) leadToHost() {
	defaults := d.panels[len(d.panels)-1]["fieldConfig"].(object)["defaults"].(object)
	defaults["links"] = []object{{
		"title": "the host ${__field.labels.host}", "targetBlank": false,
		"url": "/d/ttmon-node?var-datasource=${datasource}&var-host=${__field.labels.host}&${__url_time_range}",
	}}
}

func (d *dashboard) bytes() []byte {
	d.body["panels"] = d.panels
	b, err := json.MarshalIndent(d.body, "", " ")
	if err != nil {
		panic(fmt.Sprintf("BUG: a dashboard: %v", err))
	}
	return append(b, '\n')
}
