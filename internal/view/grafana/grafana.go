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

	"github.com/ttmon/ttmon/internal/metric"
)

type object = map[string]any

// units are Grafana's names of the base units at the end of metric names.
var units = map[string]string{
	"celsius": "celsius", "watts": "watt", "volts": "volt", "amperes": "amp", "hertz": "hertz", "rpm": "rotrpm", "bytes": "bytes",
	"seconds": "s", "ratio": "percentunit", "joules": "joule",
}

// Node is the dashboard of one host, chip by chip.
func Node(table []metric.Device) []byte {
	d := newDashboard("ttmon-node", "ttmon: one host", object{
		"name": "host", "label": "Host", "type": "query", "datasource": source(), "refresh": 2, "sort": 7,
		"query": object{"query": "label_values(tenstorrent_devices, instance)", "refId": "host"}, "definition": "label_values(tenstorrent_devices, instance)",
	}, object{
		"name": "device", "label": "Device", "type": "query", "datasource": source(), "refresh": 2, "multi": true, "includeAll": true, "sort": 3, "current": object{"text": "All", "value": "$__all"},
		"query":      object{"query": `label_values(tenstorrent_device_info{instance="$host"}, device)`, "refId": "device"},
		"definition": `label_values(tenstorrent_device_info{instance="$host"}, device)`,
	})
	const only = `instance="$host"`
	d.stat("Devices", "none", `sum(tenstorrent_devices{`+only+`})`)
	d.stat("Not ok", "none", `sum(tenstorrent_devices_in_condition{`+only+`,condition!="ok"})`)
	d.stat("Hottest chip", "celsius", `max(tenstorrent_asic_temperature_celsius{`+only+`})`)
	d.stat("Power", "watt", `sum(tenstorrent_core_power_watts{`+only+`})`)
	d.stat("DRAM used", "bytes", `sum(tenstorrent_memory_used_bytes{`+only+`,pool="dram"})`)
	d.stat("Alerts", "none", `count(ALERTS{`+only+`,alertstate="firing"}) or vector(0)`)
	both := only + `,device=~"$device"`
	seen := map[string]bool{}
	for _, f := range table {
		if f.Prom.Name == "" || seen[f.Prom.Name] || !drawn(f.Prom.Name) {
			continue
		}
		seen[f.Prom.Name] = true
		expr, legend := f.Prom.Name+"{"+both+"}", "{{device}}"
		if f.Prom.Labels != "" {
			name, _, _ := strings.Cut(f.Prom.Labels, "=")
			legend += " {{" + name + "}}"
		}
		unit := unitOf(f.Prom.Name)
		if f.Prom.Type == "counter" {
			expr = "rate(" + expr + "[$__rate_interval])"
			if unit == "bytes" {
				unit = "Bps"
			}
		}
		d.chart(title(f.Prom.Name), f.Help, unit, expr, legend)
	}
	d.chart("DRAM used of each chip", "of boards with more than one", "bytes", `tenstorrent_chip_memory_used_bytes{`+both+`,pool="dram"}`, "{{device}}{{chip}}")
	d.chart("Memory by workload", "who holds DRAM", "bytes", `tenstorrent_workload_memory_used_bytes{`+both+`,pool="dram"}`,
		"{{device}} {{namespace}} {{pod}} {{container}} {{slurm_job}} {{unit}}")
	d.chart("How exact the memory figures are", "0 exact, 1 at least that much, 2 unsure", "none", `max by (device) (tenstorrent_memory_used_bound{`+both+`})`, "{{device}}")
	d.chart("Device conditions", "1 for each condition a device is in", "none", `tenstorrent_device_condition{`+both+`} == 1`, "{{device}} {{condition}}")
	d.chart("Throttled by", "1 for what throttles a device", "none", `tenstorrent_device_throttle_reason{`+both+`} == 1`, "{{device}} {{reason}}")
	d.chart("How long sources take", "the daemon about itself", "s", `tenstorrent_collect_duration_seconds{`+only+`}`, "{{collector}}")
	return d.bytes()
}

// Fleet is the dashboard of many hosts: the engine adds up.
func Fleet() []byte {
	d := newDashboard("ttmon-fleet", "ttmon: the fleet")
	d.stat("Hosts", "none", `count(tenstorrent_devices)`)
	d.stat("Devices", "none", `sum(tenstorrent_devices)`)
	d.stat("Not ok", "none", `sum(tenstorrent_devices_in_state{state!="ok"})`)
	d.stat("Hottest chip", "celsius", `max(tenstorrent_asic_temperature_celsius)`)
	d.stat("Power", "watt", `sum(tenstorrent_core_power_watts)`)
	d.stat("Alerts", "none", `count(ALERTS{alertstate="firing",alertname=~"Chip.*|Thermal.*|Memory.*|PCIe.*|Heartbeat.*"}) or vector(0)`)
	d.chart("Devices by state", "of all hosts", "none", `sum by (state) (tenstorrent_devices_in_state)`, "{{state}}")
	d.chart("Hosts with chips that are not ok", "the worst 20", "none", `topk(20, sum by (instance) (tenstorrent_devices_in_state{state!="ok"}) > 0)`, "{{instance}}")
	d.chart("Hottest chip of each host", "the hottest 20", "celsius", `topk(20, max by (instance) (tenstorrent_asic_temperature_celsius))`, "{{instance}}")
	d.chart("Power of each host", "the 20 that draw most", "watt", `topk(20, sum by (instance) (tenstorrent_core_power_watts))`, "{{instance}}")
	d.chart("DRAM used", "of all hosts; what is known", "bytes", `sum(tenstorrent_memory_used_bytes{pool="dram"})`, "used")
	d.chart("DRAM used of each host", "the fullest 20", "percentunit",
		`topk(20, sum by (instance) (tenstorrent_memory_used_bytes{pool="dram"}) / sum by (instance) (tenstorrent_memory_size_bytes{pool="dram"}))`, "{{instance}}")
	d.chart("PCIe traffic", "of all hosts", "Bps", `sum by (direction) (rate(tenstorrent_pcie_transferred_bytes_total[$__rate_interval]))`, "{{direction}}")
	d.chart("Resets and losses", "in the last hour", "none", `sum(increase(tenstorrent_device_resets_total[1h])) + sum(increase(tenstorrent_device_losses_total[1h]))`, "both")
	return d.bytes()
}

// drawn tells whether a family is worth a chart: limits, links and counts of
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

func (d *dashboard) bytes() []byte {
	d.body["panels"] = d.panels
	b, err := json.MarshalIndent(d.body, "", " ")
	if err != nil {
		panic(fmt.Sprintf("BUG: a dashboard: %v", err))
	}
	return append(b, '\n')
}
