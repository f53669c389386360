package metric

import (
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// memory has the pools of a device, summed over its chips.
func memory() []Device {
	list := []Device{
		{
			Name: "memory.tracked", Title: "Tracking", Help: "how far the figures can be trusted: ok, partial, denied, absent or unknown_layout", JSON: "memory.tracking",
			Get: func(_ *model.Snapshot, d *model.Device) Value {
				if d.Memory.Tracking == "" {
					return str(string(model.TrackAbsent))
				}
				return str(string(d.Memory.Tracking))
			},
		},
	}
	// The pools whose size can be known from outside.
	for _, p := range []model.Pool{model.DRAM, model.L1} {
		help := "DRAM of the device's chips"
		if p == model.L1 {
			help = "L1 that tt-metal's allocator has on the device's chips"
		}
		list = append(list, Device{
			Name: poolField(p) + ".total", Title: words.PoolName(p) + " Total", Kind: Gauge, Unit: "MiB", Per: mib, Help: help, JSON: "memory." + p.String() + ".total_bytes",
			Prom: gauge("memory_size_bytes").with(`pool="`+p.String()+`"`, 0),
			Get:  func(_ *model.Snapshot, d *model.Device) Value { return num(d.Memory.Pools[p].Total) },
		})
	}
	for _, p := range model.Pools() {
		used := ofFigure(poolField(p)+".used", usedTitle(p), usedHelp(p), "memory."+p.String()+".used", `pool="`+p.String()+`"`,
			"memory_used_bytes", func(d *model.Device) model.Bytes { return d.Memory.Pools[p].Used })
		if p == model.DRAM {
			used[0].Limit = "memory.total"
		}
		list = append(list, used...)
	}
	for _, p := range []model.Pool{model.DRAM, model.L1} {
		list = append(list, ofFigure(poolField(p)+".occupied", words.PoolName(p)+" Occupied", "taken of "+strings.ToUpper(p.String())+", padding included; only where the allocator itself is seen",
			"memory."+p.String()+".occupied", `pool="`+p.String()+`"`, "memory_occupied_bytes", func(d *model.Device) model.Bytes { return d.Memory.Pools[p].Occupied })...)
	}
	list = append(list,
		Device{
			Name: "memory.free", Title: "DRAM Free", Sparse: true, Kind: Gauge, Unit: "MiB", Per: mib, Help: "DRAM the allocator can still give; only where the allocator itself is seen: it is not total minus used",
			JSON: "memory.dram.free_bytes",
			Get: func(_ *model.Snapshot, d *model.Device) Value {
				r := d.Memory.Pools[model.DRAM].Free
				if !r.Known() && r.Why == "" {
					r.Why = "not known from outside: it is not total minus used"
				}
				return num(r)
			},
		},
	)
	for _, p := range []model.Pool{model.DRAM, model.L1} {
		list = append(list, Device{
			Name: poolField(p) + ".largest_free", Title: words.PoolName(p) + " Largest Free Block", Sparse: true, Kind: Gauge, Unit: "MiB", Per: mib,
			Help: "largest free block of " + strings.ToUpper(p.String()) + ", over all banks; only where the allocator itself is seen",
			JSON: "memory." + p.String() + ".largest_free_bytes", Prom: gauge("memory_largest_free_bytes").with(`pool="`+p.String()+`"`, 0),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.Memory.Pools[p].LargestFree) },
		}, Device{
			Name: poolField(p) + ".fragmentation", Title: words.PoolName(p) + " Fragmentation", Sparse: true, Kind: Gauge, Unit: "%", Per: 0.01,
			Help: "free " + strings.ToUpper(p.String()) + " that is not in the largest free block, of the worst chip; only where the allocator itself is seen",
			Prom: gauge("memory_fragmentation_ratio").with(`pool="`+p.String()+`"`, 0),
			Get:  func(_ *model.Snapshot, d *model.Device) Value { return num(fragmentation(d, p)) },
		})
	}
	list = append(list, ofFigure("memory.stale", "Stale (of dead processes)", "left behind by dead processes, in no figure above: see ttmon mem --stale",
		"memory.stale", "", "memory_orphaned_bytes", func(d *model.Device) model.Bytes { return d.Memory.Stale })...)
	inferred := ofFigure("l1.inferred", "CB and KERNEL, Inferred", "L1 that the driver counts and no process accounts for: circular buffers, kernels and what else is there; only with a driver that has l1_used",
		"memory.inferred", "", "", func(d *model.Device) model.Bytes { return d.Memory.Inferred })
	inferred[0].Prom = Prom{} // no dashboard waits for a driver that does not exist
	list = append(list, inferred...)
	for i := range list {
		if p := &list[i].Prom; p.Name != "" {
			p.Chip = ofChip(p.Name)
		}
	}
	return append(list, Device{
		Name: "memory.doubts", Help: "kinds of what the figures leave out",
		Get: func(_ *model.Snapshot, d *model.Device) Value { return kinds(d.Memory.Doubts, d.Doubts) },
	}, Device{
		Name: "memory.note", Help: "what the figures leave out, as sentences",
		Get: func(_ *model.Snapshot, d *model.Device) Value { return sentences(d.Memory.Doubts, d.Doubts) },
	})
}

// ofChip is the name of a family of devices for their chips.
func ofChip(name string) string { return strings.Replace(name, "tenstorrent_", "tenstorrent_chip_", 1) }

// fragmentation is the part of a pool's free bytes that is not in the largest
// free block, on the chip where that is most. Free blocks of two chips are
// never one.
func fragmentation(d *model.Device, p model.Pool) model.Reading[float64] {
	worst := model.Reading[float64]{Status: model.Absent}
	for i := range d.Chips {
		u := &d.Chips[i].Memory.Pools[p]
		free, known := u.Free.Get()
		largest, also := u.LargestFree.Get()
		if !known || !also {
			continue
		}
		part := 0.0
		if free > 0 {
			part = 1 - float64(largest)/float64(free)
		}
		if !worst.Known() || part > worst.V {
			worst = model.Value(part)
		}
	}
	return worst
}

func usedTitle(p model.Pool) string {
	if p == model.L1 {
		return "L1, Buffers"
	}
	return words.PoolName(p)
}

func usedHelp(p model.Pool) string {
	switch p {
	case model.L1:
		return "asked for by buffers in L1; they take more, the same range of every core: l1.occupied"
	case model.CB:
		return "allocated in CB (circular buffers; what is counted depends on the writer: memory.cb_means in JSON)"
	default:
		return "allocated in " + strings.ToUpper(p.String())
	}
}

// ofFigure is a memory figure and, as a field of its own, its bound.
func ofFigure(name, title, help, json, labels, prom string, get func(*model.Device) model.Bytes) []Device {
	return []Device{{
		Name: name, Title: title, Sparse: strings.HasSuffix(name, ".occupied") || strings.HasSuffix(name, ".inferred"), Kind: Gauge, Unit: "MiB", Per: mib, Help: help, JSON: json + "_bytes", Prom: bounded(prom, labels),
		Get: func(_ *model.Snapshot, d *model.Device) Value { return untracked(d.Memory.Tracking, figure(get(d))) },
	}, {
		Name: name + ".bound", Help: boundHelp + name, JSON: json + "_bound",
		Get: func(_ *model.Snapshot, d *model.Device) Value { return untracked(d.Memory.Tracking, bound(get(d))) },
	}}
}

// bounded is a gauge with a companion for its bound.
func bounded(name, labels string) Prom {
	p := gauge(name).with(labels, 0)
	p.Bound = strings.TrimSuffix(p.Name, "_bytes") + "_bound"
	return p
}

const boundHelp = "exact, at_least (something is not in it) or unsure (too high or too low): what is known of "

// kinds lists the kinds of doubts.
func kinds(lists ...[]model.Doubt) Value {
	var out []string
	for _, d := range slices.Concat(lists...) {
		if !slices.Contains(out, string(d.Kind)) {
			out = append(out, string(d.Kind))
		}
	}
	return str(strings.Join(out, " "))
}

// sentences are doubts for people.
func sentences(lists ...[]model.Doubt) Value {
	var out []string
	for _, d := range slices.Concat(lists...) {
		if text := words.Doubt(d); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return str(strings.Join(out, "; "))
}

// poolField is how a pool is called in names of fields; the DRAM is what
// everybody calls the memory.
func poolField(p model.Pool) string {
	if p == model.DRAM {
		return "memory"
	}
	return p.String()
}

// untracked gives a figure that no process accounts for the reason of its memory.
func untracked(t model.Tracking, v Value) Value {
	if v.Status == model.Absent {
		switch t {
		case model.TrackDenied:
			v.Status = model.Denied
		case model.TrackUnknown:
			v.Status = model.Unsupported
		}
	}
	return v
}

func firmware() []Device {
	version := func(name, title, what, json string, get func(*model.Device) model.Reading[string], synonyms ...Synonym) Device {
		return Device{
			Name: "fw." + name, Title: title, Help: "version of " + what, JSON: "firmware." + json, Synonyms: synonyms,
			Get: func(_ *model.Snapshot, d *model.Device) Value { return text(get(d)) },
		}
	}
	list := []Device{
		version("bundle", "Bundle", "the firmware bundle", "bundle", func(d *model.Device) model.Reading[string] { return d.Firmware.Bundle }, same("vbios_version")...),
		version("arc", "ARC", "the management core's firmware", "arc", func(d *model.Device) model.Reading[string] { return d.Firmware.ARC }, same("fw.cm")...),
		version("eth", "Ethernet", "the Ethernet firmware", "eth", func(d *model.Device) model.Reading[string] { return d.Firmware.ETH }),
		version("m3app", "M3 Application", "the board controller's firmware", "m3_app", func(d *model.Device) model.Reading[string] { return d.Firmware.M3App }),
		version("m3bl", "M3 Bootloader", "the board controller's bootloader", "m3_bootloader", func(d *model.Device) model.Reading[string] { return d.Firmware.M3Bootloader }),
		version("ttflash", "TT-Flash", "the tt-flash that flashed it", "tt_flash", func(d *model.Device) model.Reading[string] { return d.Firmware.TTFlash }),
	}
	list[0].Head = "Firmware"
	return list
}

// foreign lists what scripts written for nvidia-smi ask for and no Tenstorrent
// board has: they get [N/A], as they would from a GPU without it.
func foreign() []Device {
	var list []Device
	for _, f := range []struct{ name, unit string }{
		{"utilization.memory", "%"},
		{"memory.reserved", "MiB"},
		{"clocks.mem", "MHz"},
		{"clocks.max.mem", "MHz"},
		{"power.draw.average", "W"},
		{"fan.speed.percent", "%"},
		{"pstate", ""},
		{"compute_mode", ""},
		{"persistence_mode", ""},
		{"display_active", ""},
		{"display_mode", ""},
		{"mig.mode.current", ""},
		{"ecc.mode.current", ""},
		{"ecc.errors.corrected.volatile.total", ""},
		{"ecc.errors.uncorrected.volatile.total", ""},
		{"clocks_event_reasons.active", ""},
		{"clocks_throttle_reasons.active", ""}, // its name up to R535, still understood there
	} {
		kind := Text
		if f.unit != "" {
			kind = Gauge
		}
		list = append(list, Device{
			Name: f.name, Foreign: true, Kind: kind, Unit: f.unit, Help: "[N/A]: accepted for scripts written for nvidia-smi",
			Get: func(*model.Snapshot, *model.Device) Value { return Value{Why: "the driver does not offer it"} },
		})
	}
	return list
}
