package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// wordNames are the raw words of smbus_telem, in the order of the official
// tool: the legacy array on Wormhole, the tag table on Blackhole.
func wordNames(a model.Arch) []string {
	if a == model.Wormhole {
		return strings.Fields(`ENUM_VERSION DEVICE_ID ASIC_RO ASIC_IDD BOARD_ID_HIGH BOARD_ID_LOW
		ARC0_FW_VERSION ARC1_FW_VERSION ARC2_FW_VERSION ARC3_FW_VERSION SPIBOOTROM_FW_VERSION ETH_FW_VERSION
		DM_BL_FW_VERSION DM_APP_FW_VERSION DDR_STATUS ETH_STATUS0 ETH_STATUS1 PCIE_STATUS FAULTS
		ARC0_HEALTH ARC1_HEALTH ARC2_HEALTH ARC3_HEALTH FAN_SPEED AICLK AXICLK ARCCLK THROTTLER VCORE
		ASIC_TEMPERATURE VREG_TEMPERATURE BOARD_TEMPERATURE TDP TDC VDD_LIMITS THM_LIMITS WH_FW_DATE
		ASIC_TMON0 ASIC_TMON1 MVDDQ_POWER GDDR_TRAIN_TEMP0 GDDR_TRAIN_TEMP1 BOOT_DATE RT_SECONDS
		ETH_DEBUG_STATUS0 ETH_DEBUG_STATUS1 TT_FLASH_VERSION ETH_LOOPBACK_STATUS ETH_LIVE_STATUS
		FW_BUNDLE_VERSION NUMBER_OF_TAGS INPUT_POWER`)
	}
	return strings.Fields(`BOARD_ID_HIGH BOARD_ID_LOW ASIC_ID HARVESTING_STATE UPDATE_TELEM_SPEED
		VCORE TDP TDC VDD_LIMITS THM_LIMIT_SHUTDOWN ASIC_TEMPERATURE VREG_TEMPERATURE BOARD_TEMPERATURE
		AICLK AXICLK ARCCLK L2CPUCLK0 L2CPUCLK1 L2CPUCLK2 L2CPUCLK3 ETH_LIVE_STATUS DDR_STATUS DDR_SPEED
		ETH_FW_VERSION GDDR_FW_VERSION DM_APP_FW_VERSION DM_BL_FW_VERSION FLASH_BUNDLE_VERSION CM_FW_VERSION
		L2CPU_FW_VERSION FAN_SPEED TIMER_HEARTBEAT TELEMETRY_ENUM_COUNT ENABLED_TENSIX_COL ENABLED_ETH
		ENABLED_GDDR ENABLED_L2CPU PCIE_USAGE NOC_TRANSLATION FAN_RPM GDDR_0_1_TEMP GDDR_2_3_TEMP
		GDDR_4_5_TEMP GDDR_6_7_TEMP GDDR_0_1_CORR_ERRS GDDR_2_3_CORR_ERRS GDDR_4_5_CORR_ERRS
		GDDR_6_7_CORR_ERRS GDDR_UNCORR_ERRS MAX_GDDR_TEMP ASIC_LOCATION BOARD_POWER_LIMIT TDC_LIMIT_MAX
		THM_LIMIT_THROTTLE TT_FLASH_VERSION THERM_TRIP_COUNT ASIC_ID_HIGH ASIC_ID_LOW AICLK_LIMIT_MAX
		TDP_LIMIT_MAX NUMBER_OF_TAGS INPUT_POWER`)
}

// smbus has the raw words as hexadecimal strings: those that the driver's
// files or ttmond's reading of the firmware's table hold whole, null for all others. A word of which only a half is known
// is not known.
func (c ttChip) smbus() object {
	known := map[string]any{}
	names := wordNames(c.Arch)
	if !c.remote {
		c.words(known)
	}
	out := make(object, len(names))
	for i, name := range names {
		out[i] = member{name, known[name]}
	}
	return out
}

func (c ttChip) words(known map[string]any) {
	put := func(name string, v uint64, ok bool) {
		if ok {
			known[name] = fmt.Sprintf("%#x", v)
		}
	}
	number := func(r model.Reading[float64], factor float64) (uint64, bool) {
		v, ok := r.Get()
		return uint64(math.Round(v * factor)), ok && v >= 0 && !r.Nominal
	}
	float := func(name string, r model.Reading[float64], factor float64) {
		v, ok := number(r, factor)
		put(name, v, ok)
	}
	id := func(name string, r model.Reading[string]) {
		v, err := strconv.ParseUint(r.V, 16, 64)
		ok := r.Known() && err == nil
		put(name+"_HIGH", v>>32, ok)
		put(name+"_LOW", v&math.MaxUint32, ok)
	}
	version := func(name string, r model.Reading[string], bits ...int) {
		v, ok := packVersion(r.V, bits)
		put(name, v, ok && r.Known())
	}
	bytes := []int{8, 8, 8, 8}
	id("BOARD_ID", c.Serial)
	float("VCORE", c.Voltage, 1000)
	float("AXICLK", c.AXICLK, 1)
	float("ARCCLK", c.ARCCLK, 1)
	version("TT_FLASH_VERSION", c.Firmware.TTFlash, bytes...)
	version("DM_BL_FW_VERSION", c.Firmware.M3Bootloader, bytes...)
	version("DM_APP_FW_VERSION", c.Firmware.M3App, bytes...)
	if c.Arch == model.Wormhole {
		put("DEVICE_ID", uint64(c.PCIID.Device)<<16|uint64(c.PCIID.Vendor), c.PCIID.Device != 0)
		version("ARC0_FW_VERSION", c.Firmware.ARC, bytes...)
		version("ETH_FW_VERSION", c.Firmware.ETH, 8, 4, 12)
		version("FW_BUNDLE_VERSION", c.Firmware.Bundle, bytes...)
		float("ASIC_TEMPERATURE", c.Temperature, 16)
		both := func(name string, low, high model.Reading[float64]) {
			l, lok := number(low, 1)
			h, hok := number(high, 1)
			put(name, h<<16|l, lok && hok)
		}
		both("TDP", c.Power, c.PowerLimit)
		both("TDC", c.Current, c.CurrentLimit)
		both("AICLK", c.AICLK, c.AICLKMax)
		both("THM_LIMITS", c.TemperatureLimit, c.ShutdownTemperature)
		return
	}
	id("ASIC_ID", c.ASICID)
	float("TDP", c.Power, 1)
	float("TDC", c.Current, 1)
	float("AICLK", c.AICLK, 1)
	float("ASIC_TEMPERATURE", c.Temperature, 65536)
	float("FAN_RPM", c.Fan, 1)
	float("TDP_LIMIT_MAX", c.PowerLimit, 1)
	float("TDC_LIMIT_MAX", c.CurrentLimit, 1)
	float("THM_LIMIT_THROTTLE", c.TemperatureLimit, 1)
	float("THM_LIMIT_SHUTDOWN", c.ShutdownTemperature, 1)
	float("AICLK_LIMIT_MAX", c.AICLKMax, 1)
	float("BOARD_POWER_LIMIT", c.BoardPowerLimit, 1)
	version("FLASH_BUNDLE_VERSION", c.Firmware.Bundle, bytes...)
	version("CM_FW_VERSION", c.Firmware.ARC, bytes...)
	t := &c.Telemetry
	float("DDR_SPEED", t.MemorySpeed, 1)
	float("MAX_GDDR_TEMP", t.MemoryTemperature, 1)
	float("INPUT_POWER", t.BoardPower, 1)
	put("ENABLED_GDDR", uint64(t.Enabled.Memory.V), t.Enabled.Memory.Known())
	put("ENABLED_ETH", uint64(t.Enabled.Ethernet.V), t.Enabled.Ethernet.Known())
	put("ASIC_LOCATION", uint64(t.Location.V), t.Location.Known())
	put("TIMER_HEARTBEAT", uint64(c.Heartbeat.V), c.Heartbeat.Known())
	put("THERM_TRIP_COUNT", uint64(c.ThermalTrips.V), c.ThermalTrips.Known())
}

// packVersion puts a dotted version back into the word it came from: one
// number per field of the given widths, the highest first.
func packVersion(s string, bits []int) (v uint64, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != len(bits) {
		return 0, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, bits[i])
		if err != nil {
			return 0, false
		}
		v = v<<bits[i] | n
	}
	return v, true
}
