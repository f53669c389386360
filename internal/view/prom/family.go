package prom

import (
	"strings"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
)

// Family is all series of one name.
type Family struct {
	Name string
	Type string // gauge or counter
	Help string
	// Static families hardly ever change: limits, sizes, names, states.
	// A database may store only their changes, and a few samples between.
	Static bool
}

// Unit is the base unit at the end of the name, or "".
func (f *Family) Unit() string {
	name := strings.TrimSuffix(f.Name, "_total")
	unit := name[strings.LastIndexByte(name, '_')+1:]
	switch unit {
	case "seconds", "bytes", "celsius", "volts", "amperes", "watts", "joules", "hertz", "ratio", "rpm":
		return unit
	}
	return ""
}

// deviceFamily is a family of the metric table: one row of it for each set of
// constant labels.
type deviceFamily struct {
	Family
	estimate bool
	bound    *Family // its companion; nil: the figures are never doubtful
	rows     []tableRow
	// chip and chipBound are the same for each chip of boards with several.
	chip, chipBound *Family
}

// tableRow is a row of the metric table, with its constant labels.
type tableRow struct {
	metric.Device
	labels Labels
}

// shared says what the rows of a family with several of them have in common.
var shared = map[string]string{
	"tenstorrent_temperature_limit_celsius":    "temperatures at which the chip throttles and shuts down",
	"tenstorrent_clock_hertz":                  "clock frequencies",
	"tenstorrent_clock_limit_hertz":            "the highest clock frequencies",
	"tenstorrent_pcie_transferred_bytes_total": "bytes over PCIe since ttmond first saw the device",
	"tenstorrent_memory_size_bytes":            "memory of the device's chips, by pool",
	"tenstorrent_memory_used_bytes":            "bytes allocated, by pool; see tenstorrent_memory_used_bound",
	"tenstorrent_memory_occupied_bytes":        "bytes taken, by pool, padding included; only where the allocator itself is seen",
	"tenstorrent_process_memory_used_bytes":    "bytes allocated by a process, by device and pool",
}

// deviceFamilies groups the table by Prometheus name, in its order.
func deviceFamilies() []deviceFamily {
	var list []deviceFamily
	at := map[string]int{}
	for _, f := range metric.Devices() {
		if f.Prom.Name == "" {
			continue
		}
		i, ok := at[f.Prom.Name]
		if !ok {
			i, at[f.Prom.Name] = len(list), len(list)
			help := f.Help
			if s := shared[f.Prom.Name]; s != "" {
				help = s
			}
			x := deviceFamily{
				Family:   Family{Name: f.Prom.Name, Type: f.Prom.Type, Help: help, Static: static(f.Prom.Name)},
				estimate: strings.Contains(f.Prom.Name, "_estimate_"),
				bound:    companion(&f.Prom),
			}
			x.chip, x.chipBound = chipFamilies(&f.Prom)
			list = append(list, x)
		}
		list[i].rows = append(list[i].rows, tableRow{f, constant(f.Prom.Labels)})
	}
	return list
}

// chipFamilies are those of a figure of single chips, and of its bounds.
func chipFamilies(p *metric.Prom) (figure, bound *Family) {
	if p.Chip == "" {
		return nil, nil
	}
	figure = &Family{Name: p.Chip, Type: p.Type, Help: p.Name + " of each chip, on boards with more than one", Static: static(p.Name)}
	if p.Bound != "" {
		of := metric.Prom{Name: p.Chip, Bound: strings.TrimSuffix(strings.TrimSuffix(p.Chip, "_bytes"), "_ratio") + "_bound"}
		bound = companion(&of)
	}
	return figure, bound
}

// companion is the family of a figure's bounds.
func companion(p *metric.Prom) *Family {
	if p.Bound == "" {
		return nil
	}
	return gauge(strings.TrimPrefix(p.Bound, "tenstorrent_"), "how to read "+p.Name+": 0 exact, 1 at least that much, 2 unsure; max() is the bound of a sum")
}

func static(name string) bool {
	return strings.Contains(name, "_limit_") || strings.Contains(name, "_link_") || strings.HasSuffix(name, "_info") || strings.HasSuffix(name, "_bound") ||
		name == "tenstorrent_memory_size_bytes" || name == "tenstorrent_device_state" || name == "tenstorrent_device_condition" || name == "tenstorrent_device_throttle_reason" || name == "tenstorrent_memory_tracking" || name == "tenstorrent_limit_max"
}

func gauge(name, help string) *Family {
	return &Family{Name: "tenstorrent_" + name, Type: "gauge", Help: help, Static: static("tenstorrent_" + name)}
}

func counter(name, help string) *Family {
	return &Family{Name: "tenstorrent_" + name, Type: "counter", Help: help}
}

// extras are the families that are no row of the metric table.
var extras []*Family

func listed(f *Family) *Family {
	extras = append(extras, f)
	return f
}

var (
	up             = listed(gauge("up", "whether the last collection of this node worked"))
	simulated      = listed(gauge("simulated", "whether the host is ttmon-sim's"))
	buildInfo      = listed(gauge("build_info", "the ttmond that says this"))
	driverInfo     = listed(gauge("driver_info", "version of the tenstorrent kernel module"))
	devices        = listed(gauge("devices", "devices that the driver shows"))
	inState        = listed(gauge("devices_in_state", "devices in each state: what a fleet adds up, since there are few of it"))
	inCondition    = listed(gauge("devices_in_condition", "devices in each condition, each in its worst alone: what a fleet adds up"))
	unbound        = listed(gauge("devices_unbound", "Tenstorrent functions on the PCI bus that no driver has claimed"))
	deviceInfo     = listed(gauge("device_info", "what a device is"))
	firmwareInfo   = listed(gauge("device_firmware_info", "firmware versions of a device"))
	deviceState    = listed(gauge("device_state", "1 for the state that the device is in, 0 for the others"))
	condition      = listed(gauge("device_condition", "1 for every condition that the device is in, 0 for the others"))
	throttle       = listed(gauge("device_throttle_reason", "1 for what throttles the clock of the device, 0 for the others"))
	outsideLink    = listed(gauge("outside_link_info", "1 for each Ethernet link to another host that UMD has found: the ids of the chips at its ends, and their channels"))
	outsideUp      = listed(gauge("outside_link_up", "whether an Ethernet link to another host is up, as this end reports"))
	deviceResets   = listed(counter("device_resets_total", "resets of the device that ttmond saw"))
	deviceLosses   = listed(counter("device_losses_total", "times that the device was lost from the bus"))
	energy         = listed(counter("core_energy_joules_total", "energy of the core rail since ttmond first saw the device, added up from its power"))
	tracking       = listed(gauge("memory_tracking", "1 for how far memory is accounted for on the device, 0 for the others"))
	workloadUsed   = listed(gauge("workload_memory_used_bytes", "bytes allocated by a workload, by device and pool; what belongs to none has no workload labels"))
	workloadBound  = listed(gauge("workload_memory_used_bound", "how to read tenstorrent_workload_memory_used_bytes: 0 exact, 1 at least, 2 unsure"))
	workloads      = listed(gauge("workload_processes", "processes of a workload that use the device"))
	processUsed    = listed(gauge("process_memory_used_bytes", shared["tenstorrent_process_memory_used_bytes"]))
	processBound   = listed(gauge("process_memory_used_bound", "how to read tenstorrent_process_memory_used_bytes: 0 exact, 1 at least, 2 unsure"))
	processBusy    = listed(counter("process_busy_seconds_total", "time in which programs of a process ran on a chip"))
	processRan     = listed(counter("process_programs_total", "programs of a process that ran on a chip"))
	processGap     = listed(gauge("process_longest_gap_seconds", "longest time between two programs of a process on a chip, since the process began; only where no program can have run in it unreported"))
	operationBusy  = listed(counter("operation_busy_seconds_total", "time that the programs of an operation took of a chip: the operations of a process that took most"))
	operationCalls = listed(counter("operation_calls_total", "programs of an operation that ran on a chip"))
	snapshotTime   = listed(gauge("snapshot_timestamp_seconds", "when the figures were collected"))
	sourceDuration = listed(gauge("collect_duration_seconds", "how long a source took in the last collection"))
	sourceSuccess  = listed(gauge("collect_success", "whether a source worked in the last collection"))
	sourceLast     = listed(gauge("collect_last_success_timestamp_seconds", "when a source last worked"))
	limitMax       = listed(gauge("limit_max", "a bound that ttmond keeps"))
	limitUsed      = listed(gauge("limit_used", "how much of a bound is used"))
	limitDropped   = listed(counter("limit_dropped_total", "what a bound has turned away"))
	clients        = listed(gauge("clients", "clients that are connected"))
)

// Families lists all there can be.
func Families() []Family {
	var list []Family
	for _, f := range deviceFamilies() {
		list = append(list, f.Family)
		for _, more := range []*Family{f.bound, f.chip, f.chipBound} {
			if more != nil {
				list = append(list, *more)
			}
		}
	}
	for _, f := range extras {
		list = append(list, *f)
	}
	return list
}

var trackings = []model.Tracking{model.TrackOK, model.TrackPartial, model.TrackDenied, model.TrackAbsent, model.TrackUnknown}

var states = model.States()

var throttles = []model.Cause{model.ByHeat, model.ByPower, model.ByCurrent, model.ByVoltage, model.BySoftware, model.ByFirmware}
