package telemetry

import "github.com/ttmon/ttmon/internal/model"

// Missing makes every reading of t one without a value, for one reason.
func Missing(t *model.Telemetry, status model.Status, why string) {
	number := model.Missing[float64](status, why)
	word, mask, count := model.Missing[string](status, why), model.Missing[uint32](status, why), model.Missing[int](status, why)
	*t = model.Telemetry{
		BoardPower: number, BoardTemperature: number, RegulatorTemperature: number, MemoryTemperature: number, MemorySpeed: number,
		MemoryPower: number, FanDuty: number, Corrected: model.Missing[uint64](status, why), CorrectedRate: number, Uncorrected: count,
		ThrottleStarts: mask, ThrottleShare: number, Location: count, MemoryFW: word, L2CPU: word,
		Enabled: model.EnabledParts{Tensix: mask, Ethernet: mask, Memory: mask, L2CPU: mask},
		Clock: model.ClockControl{
			Reason: model.Missing[model.ClockReason](status, why), HostCap: number, FloorMHz: number, CeilingMHz: number,
			FloorArbiter: model.Missing[model.ClockFloor](status, why), CeilingArbiter: model.Missing[model.ClockLimit](status, why),
			EnabledFloors: mask, EnabledCeil: mask,
		},
		Dispatch: model.Dispatch{Busy: number, Programs: mask, Workers: count},
	}
}
