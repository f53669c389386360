package text

// A Group is a set of columns of dmon or pmon that is chosen by a letter.
type Group struct {
	Letter  byte
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
		{'p', "pwr", "W", 5, "power.draw", 0, false},
		{'p', "temp", "C", 5, "temperature.asic", 0, false},
		{'c', "aiclk", "MHz", 5, "clocks.ai", 0, false},
		{'u', "busy", "%", 5, "busy", 0, false},
		{'u', "act", "est%", 5, "activity.estimate", 0, false},
		{'m', "dram", "MiB", 8, "memory.used", 0, false},
		{'m', "l1", "MiB", 6, "l1.used", 0, false},
		{'t', "rx", "MiB/s", 8, "pcie.rx", 1, false},
		{'t', "tx", "MiB/s", 8, "pcie.tx", 1, false},
		{'h', "hb", "1/s", 5, "heartbeat.rate", 1, false},
		{'v', "volt", "V", 6, "voltage.core", 3, false},
		{'v', "amps", "A", 5, "current.core", 0, false},
		{'v', "throt", "by", 7, "throttle.reason", 0, true},
		{'f', "fan", "rpm", 5, "fan.speed", 0, false},
		{'C', "axiclk", "MHz", 6, "clocks.axi", 0, false},
		{'C', "arcclk", "MHz", 6, "clocks.arc", 0, false},
		{'M', "l1sm", "MiB", 6, "l1_small.used", 0, false},
		{'M', "trace", "MiB", 6, "trace.used", 0, false},
		{'M', "cb", "MiB", 6, "cb.used", 0, false},
		{'M', "stale", "MiB", 8, "memory.stale", 0, false},
		{'e', "state", "", 9, "condition", 0, true},
		{'e', "trips", "#", 5, "thermal.trips", 0, false},
		{'e', "procs", "#", 5, "processes.count", 0, false},
	}
}

func pmonColumns() []monColumn {
	return []monColumn{
		{'u', "user", "name", 8, "user", 0, true},
		{'b', "busy", "%", 5, "busy", 0, false},
		{'m', "dram", "MiB", 8, "used_memory", 0, false},
		{'m', "l1", "MiB", 6, "used_l1", 0, false},
		{'M', "l1sm", "MiB", 6, "used_l1_small", 0, false},
		{'M', "trace", "MiB", 6, "used_trace", 0, false},
		{'M', "cb", "MiB", 6, "used_cb", 0, false},
		{'c', "cpu", "%", 6, "cpu", 1, false},
		{'c', "rss", "MiB", 7, "rss", 0, false},
		{'t', "time", "s", 7, "runtime", 0, false},
		{'j', "job", "name", 20, "", 0, true},
		{'n', "command", "name", 0, "", 0, true},
	}
}

// The groups that are shown by default.
const (
	DmonDefault = "pcumth"
	PmonDefault = "ubmcn"
)

// DmonHelp and PmonHelp say what the letters of -s stand for. They are written
// out, because the program needs them at every start; a test holds them to the
// columns.
const (
	DmonHelp = `  p  power of the core rail and temperature (pwr, temp)
  c  clock of the Tensix cores (aiclk)
  u  time in which a program ran; estimated from power where unknown (busy, act)
  m  memory allocated by buffers (dram, l1)
  t  PCIe traffic to and from the device (rx, tx)
  h  heartbeat of the firmware (hb)
  v  core voltage, current, and what throttles the clock (volt, amps, throt)
  f  fan (fan)
  C  the other clocks (axiclk, arcclk)
  M  the other memory pools and what dead processes left (l1sm, trace, cb, stale)
  e  state, thermal trips and number of processes (state, trips, procs)`
	PmonHelp = `  u  user, and what b shows, as in nvidia-smi (user)
  b  share of the time in which one of its programs ran (busy)
  m  memory allocated by buffers (dram, l1)
  M  the other memory pools (l1sm, trace, cb)
  c  CPU and memory of the host (cpu, rss)
  t  run time (time)
  j  job, pod, container or unit (job)
  n  command line (command)`
)

// DmonGroups and PmonGroups list the letters with their columns.
func DmonGroups() []Group { return groups(dmonColumns()) }

// PmonGroups is DmonGroups for pmon.
func PmonGroups() []Group { return groups(pmonColumns()) }

func groups(columns []monColumn) []Group {
	var list []Group
	for _, col := range columns {
		if n := len(list); n == 0 || list[n-1].Letter != col.group {
			list = append(list, Group{Letter: col.group})
		}
		g := &list[len(list)-1]
		g.Columns = append(g.Columns, col.head)
	}
	return list
}
