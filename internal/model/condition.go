package model

import (
	"fmt"
	"time"
)

// Level is how much something matters. The worse, the greater.
type Level uint8

// The levels. Views have one style for each: red where work is lost, amber
// where it is slower or will be lost, plain where it is only worth knowing.
const (
	Fine     Level = iota // as it should be
	Info                  // worth knowing
	Warning               // something works worse than it should, or soon will
	Critical              // something does not work
)

var levelWords = [...]string{Fine: "ok", Info: "info", Warning: "warning", Critical: "critical"}

func (l Level) String() string {
	if int(l) < len(levelWords) {
		return levelWords[l]
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// MarshalText is the word, for JSON.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText is the inverse; of a word that is not known, of a newer ttmond,
// Info: it is worth knowing.
func (l *Level) UnmarshalText(word []byte) error {
	var ok bool
	if *l, ok = ParseLevel(string(word)); !ok {
		*l = Info
	}
	return nil
}

// ParseLevel is the inverse of String; ok is false for an unknown word.
func ParseLevel(word string) (l Level, ok bool) {
	for i, w := range levelWords {
		if w == word {
			return Level(i), true
		}
	}
	return Fine, false
}

// Condition is something about a device, a process or the host that a user can
// act on. internal/collect/assess finds conditions, and is the only package that does;
// words has a sentence for each kind, cause, fact and remedy.
type Condition struct {
	Kind  ConditionKind
	Level Level

	// What it is about: a device by its kernel index, or a process, or, with
	// NoDevice and no process, the host.
	Device  int
	Process ProcessID

	Since     time.Time // when it began; zero where that is not known
	Older     bool      // it held already at Since, when ttmon first looked
	Cause     Cause     // why, as far as known; empty: the kind says it all
	Concluded bool      // the cause was concluded from values: neither driver nor firmware state it
	Facts     []Fact    // the values it was found by
	Remedy    Remedy
}

// The causes of ConditionThrottled, beside those of a State.
const (
	ByHeat     Cause = "heat"
	ByPower    Cause = "power"
	ByCurrent  Cause = "current"
	ByVoltage  Cause = "voltage"
	BySoftware Cause = "software" // a limit that software has set
	ByFirmware Cause = "firmware" // for a reason that this release does not know
)

// The causes of ConditionStuck: what the process waits in.
const (
	WaitsInFinish Cause = "finish"
	WaitsInEvent  Cause = "event"
)

// Fact is a value that a condition was found by.
type Fact struct {
	Kind  FactKind
	Value float64
	Limit float64 // what it is measured against; 0: nothing
}

// FactKind says which value a Fact is. The set is closed; words has the
// words for each.
type FactKind string

// The facts.
const (
	FactTemperature FactKind = "temperature_c" // and where throttling begins
	FactClock       FactKind = "aiclk_mhz"     // and its maximum
	FactPower       FactKind = "power_w"       // and its limit
	FactCurrent     FactKind = "current_a"     // and its limit
	FactLinkGen     FactKind = "pcie_gen"      // and what both ends can do
	FactLinkWidth   FactKind = "pcie_width"    // and what both ends can do
	FactTrips       FactKind = "thermal_trips" // since power-on
	FactFill        FactKind = "dram_ratio"    // used of all
	FactBytes       FactKind = "bytes"
	FactChannels    FactKind = "ethernet_channels" // of a link that are up, and all that it has
	FactCount       FactKind = "count"             // of the things that the kind names
	FactSilence     FactKind = "silent_s"          // since a program last completed, and the longest program so far
	FactWaited      FactKind = "waited_s"          // the host waits for its chips
	FactWorkPower   FactKind = "work_power_w"      // power, and what it is while the process works
	FactNeeded      FactKind = "needed_s"          // how long nothing had to complete for a suspicion
	FactResting     FactKind = "resting_chips"     // that draw less than at work, and all of the process; the power of the others tells nothing
)

// Remedy is what to do about a condition. The set is closed; words has a
// sentence for each.
type Remedy string

// The remedies.
const (
	RemedyReset       Remedy = "reset"        // reset the device, once what runs on it has ended
	RemedyResetAgain  Remedy = "reset_again"  // wait; reset it again if it stays so
	RemedyPower       Remedy = "power"        // check power and seating, reboot
	RemedyLoadDriver  Remedy = "load_driver"  // load the driver
	RemedyKernelLog   Remedy = "kernel_log"   // the kernel log says why
	RemedyCool        Remedy = "cool"         // check fans and airflow
	RemedyPowerBudget Remedy = "power_budget" // check the supply and the load
	RemedyReseat      Remedy = "reseat"       // reseat the board, check the slot
	RemedyLink        Remedy = "link"         // reset both ends, check the cable
	RemedyInnerLink   Remedy = "inner_link"   // reset both ends; no cable is between them
	RemedyClockCap    Remedy = "clock_cap"    // software has limited the clock
	RemedyBoard       Remedy = "board"        // reset it; if it lasts, the board is broken
	RemedyFree        Remedy = "free"         // see who holds the memory
	RemedyStale       Remedy = "stale"        // remove what the dead left
	RemedyOperations  Remedy = "operations"   // see what the process had its chips do
)
