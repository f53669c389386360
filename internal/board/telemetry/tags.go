package telemetry

import (
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// Tags that both architectures have.
const (
	tagRefresh          = 5 // ms between two refreshes
	tagVoltage          = 6
	tagPower            = 7
	tagCurrent          = 8
	tagVoltageLimits    = 9
	tagShutdown         = 10
	tagTemperature      = 11
	tagRegulatorTemp    = 12
	tagBoardTemp        = 13
	tagAIClk            = 14
	tagEthernetLive     = 21
	tagMemoryStatus     = 22
	tagMemorySpeed      = 23
	tagEthernetFW       = 24
	tagM3App            = 26
	tagM3Boot           = 27
	tagBundle           = 28
	tagARCFW            = 29
	tagFanDuty          = 31
	tagHeartbeat        = 32
	tagFanSpeed         = 41
	tagLocation         = 52
	tagBoardPowerLimit  = 53
	tagBoardPower       = 54
	tagCurrentLimit     = 55
	tagTTFlash          = 58
	tagTensixRows       = 59 // Wormhole's mask
	tagMaxAIClk         = 63
	tagPowerLimit       = 64
	tagEnabledEthernet  = 35
	tagEnabledMemory    = 36
	tagEnabledL2CPU     = 37
	tagTensixColumns    = 34 // Blackhole's mask
	tagMemoryFW         = 25
	tagL2CPUClock       = 17 // and the three that follow
	tagMemoryTemp       = 42 // and the three that follow: two modules each
	tagCorrected        = 46 // likewise
	tagUncorrected      = 50
	tagHottestMemory    = 51
	tagClockFloor       = 65
	tagClockCeiling     = 66
	tagEnabledFloors    = 67
	tagEnabledCeilings  = 68
	tagClockReason      = 69
	tagHostClockCap     = 70
	tagMemoryPowerWest  = 73
	tagMemoryPowerEast  = 74
	tagThrottleStarts   = 76
	tagThrottleDuration = 77 // ms of the last refresh

	// 78 and 79 are left out. On Wormhole they are the speeds of fans 2 and 3 in some
	// releases, percent and rpm of one fan in others, and the table does not say
	// which; Blackhole has capabilities and a flash id there.
)

// static are the tags that do not change while a chip is up: they are read once
// per boot.
var static = []uint16{
	tagRefresh, tagVoltageLimits, tagShutdown, tagMemorySpeed, tagEthernetFW, tagM3App, tagM3Boot, tagBundle, tagARCFW, tagLocation,
	tagTTFlash, tagTensixRows, tagMaxAIClk, tagEnabledEthernet, tagEnabledMemory, tagEnabledL2CPU, tagTensixColumns, tagMemoryFW,
}

var moving = []uint16{
	tagRegulatorTemp, tagBoardTemp, tagEthernetLive, tagMemoryStatus, tagFanDuty, tagHeartbeat, tagFanSpeed, tagBoardPowerLimit,
	tagBoardPower, tagCurrentLimit, tagPowerLimit, tagPower, tagCurrent, tagVoltage, tagTemperature, tagAIClk,
}

var movingBlackhole = []uint16{
	tagL2CPUClock, tagL2CPUClock + 1, tagL2CPUClock + 2, tagL2CPUClock + 3,
	tagMemoryTemp, tagMemoryTemp + 1, tagMemoryTemp + 2, tagMemoryTemp + 3,
	tagCorrected, tagCorrected + 1, tagCorrected + 2, tagCorrected + 3,
	tagUncorrected, tagHottestMemory, tagClockFloor, tagClockCeiling, tagEnabledFloors, tagEnabledCeilings, tagClockReason, tagHostClockCap,
	tagMemoryPowerWest, tagMemoryPowerEast, tagThrottleStarts, tagThrottleDuration,
}

// Wanted are the entries of a table whose values are of use: all of them the
// first time after a boot, later only those that move.
func Wanted(arch model.Arch, entries []Entry, first bool) []Entry {
	var list []Entry
	for _, e := range entries {
		if wanted(arch, e.Tag, first) {
			list = append(list, e)
		}
	}
	return list
}

func wanted(arch model.Arch, tag uint16, first bool) bool {
	own := arch == model.Blackhole && slices.Contains(movingBlackhole, tag)
	return own || slices.Contains(moving, tag) || first && slices.Contains(static, tag)
}
