package metric

// Tag is a place where a field of devices stands without being asked for.
type Tag uint8

// The places.
const (
	InEvents Tag = 1 << iota // it is kept with every event of its device
	InTraces                 // it is a track of a recording that is exported for other viewers
	InChecks                 // ttmon check gives it to graphs
	InFleet                  // a fleet's cells can be coloured by it: the ends of its scale are recorded for each host
)

// Charted is a field that can be drawn over time.
type Charted struct {
	Chart string // its name in the configuration and in menus: "dram"
	Name  string // of the field
}

// standing says where fields stand, in the order of menus. A field that is not in it is
// shown where its Title, Head or Section puts it, and where a user names it.
var standing = []struct {
	Charted
	tags Tag
}{
	{Charted{"dram", "memory.used"}, InEvents | InTraces | InChecks | InFleet},
	{Charted{"l1", "l1.used"}, InEvents | InTraces},
	{Charted{"power", "power.draw"}, InEvents | InTraces | InChecks | InFleet},
	{Charted{"temperature", "temperature.asic"}, InEvents | InTraces | InChecks | InFleet},
	{Charted{"busy", "busy"}, InTraces | InFleet},
	{Charted{"activity", "activity.estimate"}, InTraces},
	{Charted{"aiclk", "clocks.ai"}, InEvents | InTraces | InFleet},
	{Charted{"pcie_to", "pcie.rx"}, 0},
	{Charted{"pcie_from", "pcie.tx"}, 0},
	{Charted{"voltage", "voltage.core"}, InEvents | InTraces},
	{Charted{"current", "current.core"}, InEvents | InTraces},
	{Charted{"fan", "fan.speed"}, InEvents | InTraces},
	{Charted{"heartbeat", "heartbeat.rate"}, 0},
	{Charted{"l1_small", "l1_small.used"}, 0},
	{Charted{"trace", "trace.used"}, 0},
	{Charted{"cb", "cb.used"}, 0},
	{Charted{"kernel", "kernel.used"}, 0},
	{Charted{"", "heartbeat.age"}, InEvents | InFleet},
	{Charted{"", "memory.stale"}, InEvents | InTraces | InFleet},
	{Charted{"", "thermal.trips"}, InEvents},
	{Charted{"", "processes.count"}, InEvents},
}

// Tagged lists the fields that stand in a place.
func Tagged(tag Tag) (list []*Device) {
	for _, s := range standing {
		if s.tags&tag != 0 {
			list = append(list, Named(s.Name))
		}
	}
	return list
}

// Charts lists the fields that can be drawn over time.
func Charts() (list []Charted) {
	for _, s := range standing {
		if s.Chart != "" {
			list = append(list, s.Charted)
		}
	}
	return list
}
