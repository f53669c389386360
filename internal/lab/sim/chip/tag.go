package chip

// Tag is the number of a word in the firmware's telemetry table. Numbers
// never change their meaning; a firmware may lack some.
type Tag uint16

// The tags the driver reads.
const (
	BoardIDHigh   Tag = 1
	BoardIDLow    Tag = 2
	VCore         Tag = 6  // mV
	TDP           Tag = 7  // W
	TDC           Tag = 8  // A
	VDDLimits     Tag = 9  // mV, max in the upper half, min in the lower
	ASICTemp      Tag = 11 // °C, s16.16
	AIClk         Tag = 14 // MHz
	AXIClk        Tag = 15 // MHz
	ARCClk        Tag = 16 // MHz
	EthFW         Tag = 24
	M3App         Tag = 26
	M3Boot        Tag = 27
	Bundle        Tag = 28
	ARCFW         Tag = 29
	Heartbeat     Tag = 32
	FanRPM        Tag = 41
	TDCLimit      Tag = 55 // A
	ThrottleLimit Tag = 56 // °C
	TTFlash       Tag = 58
	ThermTrips    Tag = 60
	ASICIDHigh    Tag = 61
	ASICIDLow     Tag = 62
	TDPLimit      Tag = 64 // W
)

// Counter is one of the PCIe tile's traffic counters.
type Counter int

// The counters, and what a word of each means to the host. The directions
// follow from who starts the transfer.
const (
	HostReads           Counter = iota // mst_rd_data_word_received: device to host
	HostWritesNonposted                // mst_nonposted_wr_data_word_sent: host to device
	HostWrites                         // mst_posted_wr_data_word_sent: host to device
	ChipWritesNonposted                // slv_nonposted_wr_data_word_received: device to host
	ChipWrites                         // slv_posted_wr_data_word_received: device to host
	ChipReads                          // slv_rd_data_word_sent: host to device
	NumCounters
)

// CounterNames are the driver's file names without the NOC number.
var CounterNames = [NumCounters]string{
	"mst_rd_data_word_received", "mst_nonposted_wr_data_word_sent", "mst_posted_wr_data_word_sent",
	"slv_nonposted_wr_data_word_received", "slv_posted_wr_data_word_received", "slv_rd_data_word_sent",
}

// NOCs is how many networks carry each kind of traffic, each with counters of
// its own.
const NOCs = 2

// wordBytes is what one count stands for.
const wordBytes = 32
