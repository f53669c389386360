package text

// A Group is a set of columns of dmon or pmon that is chosen by a letter.
type Group struct {
	Letter  byte
	Help    string
	Columns []string // heads
}

// monColumn is a column of a stream. name is its field in the table of
// metrics; narrow columns take fewer decimals than a query.
type monColumn struct {
	group    byte
	head     string
	unit     string
	width    int
	name     string
	decimals int
	left     bool
}

// dmonColumns in the order they are printed.
func dmonColumns() []monColumn {
	return []monColumn{
		{'p', "pwr", "W", 5, "power.draw", 0, false}, {'p', "temp", "C", 5, "temperature.asic", 0, false},
		{'c', "aiclk", "MHz", 5, "clocks.ai", 0, false},
		{'u', "act", "est%", 5, "activity.estimate", 0, false},
		{'m', "dram", "MiB", 7, "memory.used", 0, false}, {'m', "l1", "MiB", 5, "l1.used", 0, false},
		{'t', "rx", "MiB/s", 8, "pcie.rx", 1, false}, {'t', "tx", "MiB/s", 8, "pcie.tx", 1, false},
		{'h', "hb", "1/s", 5, "heartbeat.rate", 1, false},
		{'v', "volt", "V", 6, "voltage.core", 3, false}, {'v', "amps", "A", 5, "current.core", 0, false},
		{'f', "fan", "rpm", 5, "fan.speed", 0, false},
		{'C', "axiclk", "MHz", 6, "clocks.axi", 0, false}, {'C', "arcclk", "MHz", 6, "clocks.arc", 0, false},
		{'M', "l1sm", "MiB", 5, "l1_small.used", 0, false}, {'M', "trace", "MiB", 5, "trace.used", 0, false},
		{'M', "cb", "MiB", 5, "cb.used", 0, false}, {'M', "stale", "MiB", 7, "memory.stale", 0, false},
		{'e', "state", "", 9, "state", 0, true}, {'e', "trips", "#", 5, "thermal.trips", 0, false}, {'e', "procs", "#", 5, "processes.count", 0, false},
	}
}

func pmonColumns() []monColumn {
	return []monColumn{
		{'u', "user", "name", 8, "user", 0, true},
		{'m', "dram", "MiB", 7, "used_memory", 0, false}, {'m', "l1", "MiB", 5, "used_l1", 0, false},
		{'M', "l1sm", "MiB", 5, "used_l1_small", 0, false}, {'M', "trace", "MiB", 5, "used_trace", 0, false}, {'M', "cb", "MiB", 5, "used_cb", 0, false},
		{'c', "cpu", "%", 6, "cpu", 1, false}, {'c', "rss", "MiB", 7, "rss", 0, false},
		{'t', "time", "s", 7, "runtime", 0, false},
		{'j', "job", "name", 20, "", 0, true},
		{'n', "command", "name", 0, "", 0, true},
	}
}

// The groups that are shown when nobody chooses.
const (
	DmonDefault = "pcumth"
	PmonDefault = "umcn"
)

// DmonGroups and PmonGroups say what the letters of -s stand for.
func DmonGroups() []Group {
	return groups(dmonColumns(), map[byte]string{
		'p': "power of the core rail and temperature", 'c': "clock of the Tensix cores", 'u': "activity, estimated from power",
		'm': "memory allocated", 't': "PCIe traffic to (rx) and from (tx) the device", 'h': "heartbeat of the firmware",
		'v': "core voltage and current", 'f': "fan", 'C': "the other clocks", 'M': "the other memory pools and what dead processes left",
		'e': "state, thermal trips and number of processes",
	})
}

// PmonGroups is DmonGroups for pmon.
func PmonGroups() []Group {
	return groups(pmonColumns(), map[byte]string{
		'u': "user", 'm': "memory allocated", 'M': "the other memory pools", 'c': "CPU and memory of the host",
		't': "run time", 'j': "job, pod, container or unit", 'n': "command line",
	})
}

func groups(columns []monColumn, help map[byte]string) []Group {
	var list []Group
	for _, col := range columns {
		if n := len(list); n == 0 || list[n-1].Letter != col.group {
			list = append(list, Group{Letter: col.group, Help: help[col.group]})
		}
		g := &list[len(list)-1]
		g.Columns = append(g.Columns, col.head)
	}
	return list
}
