package doctor

import (
	"reflect"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// said maps every text of a snapshot to what a bundle without --private has in
// its place. A text missing here has not been reviewed.
var said = map[string]string{
	"Host.Name": "replaced", "Host.Kernel": "kept", "Host.DriverVersion": "kept", "Host.Unbound": "kept: addresses on the bus",
	"Device.Path": "kept", "Device.BusID": "kept", "Device.Board": "kept", "Device.CPUAffinity": "kept",
	"Device.Serial": "replaced in every file", "Device.ASICID": "replaced in every file",
	"StateReason.File": "kept: a file of the driver", "Activity.Basis": "kept: a sentence of ours",
	"Firmware.Bundle": "kept", "Firmware.ARC": "kept", "Firmware.ETH": "kept", "Firmware.M3App": "kept", "Firmware.M3Bootloader": "kept", "Firmware.TTFlash": "kept",
	"Chip.Name": "kept: L or R", "Chip.Region": "its id is replaced in every file",
	"Process.User": "replaced", "Process.Name": "replaced", "Process.Cmdline": "left out", "Process.SlurmJob": "replaced", "Process.SlurmStep": "replaced",
	"Process.SystemdUnit": "replaced", "Process.Release": "kept: of tt-metal", "Process.Type": "kept: one of three words",
	"ChipWork.Chip": "left out", "ChipWork.LongestName": "left out", "ChipWork.LastName": "left out", "Operation.Name": "left out", "Gap.After": "left out", "HostWork.LastName": "left out",
	"Reach.FullName": "left out", "Reach.JobName": "left out", "Reach.TTY": "left out", "Reach.SSH": "left out", "Reach.Dir": "left out",
	"Container.Runtime": "kept", "Container.ID": "replaced", "Container.Pod": "left out", "Container.PodName": "left out", "Container.Namespace": "left out",
	"Doubt.Region": "its id is replaced in every file", "Doubt.Release": "kept: of tt-metal", "Doubt.Name": "replaced", "Doubt.Detail": "left out",
	"StaleSlot.Region": "its id is replaced in every file", "StaleSlot.Name": "replaced",
	"PodClaim.Namespace": "left out", "PodClaim.Pod": "left out", "PodClaim.Container": "left out", "PodClaim.Resource": "left out", "PodClaim.Names": "left out",
	"Telemetry.MemoryFW": "kept", "Telemetry.L2CPU": "kept", "ChipPlace.Name": "kept: L or R",
	"LogLine.BusID": "kept", "LogLine.Text": "left out", "Failures.ID": "kept: a number of ours", "Failures.Pool": "kept",
	"Account.Name": "left out", "Peak.Pool": "left out",
	"Host.Broker": "kept: one of two directories that ttmon knows",

	"Alert.Name": "kept: of a rule", "Alert.Severity": "kept", "Alert.Summary": "replaced", "Alert.BusID": "kept",
}

// TestEveryTextIsDecided: a text that is added to the snapshot is not in a
// support bundle until it is listed in said.
func TestEveryTextIsDecided(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Array {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			kind := f.Type
			for kind.Kind() == reflect.Slice {
				kind = kind.Elem()
			}
			if text := kind == reflect.TypeFor[string]() || kind == reflect.TypeFor[model.Reading[string]](); text {
				if name := typ.Name() + "." + f.Name; said[name] == "" {
					t.Errorf("%s is in the snapshot: is it private? anonymous has to know", name)
				}
				continue
			}
			walk(f.Type)
		}
	}
	// Why of a reading is made by our sources and names files, never people.
	for _, r := range []any{
		model.Reading[float64]{},
		model.Reading[int]{},
		model.Reading[uint32]{},
		model.Reading[uint64]{},
		model.Reading[bool]{},
		model.Reading[model.ClockReason]{},
		model.Reading[model.ClockFloor]{},
		model.Reading[model.ClockLimit]{},
	} {
		seen[reflect.TypeOf(r)] = true
	}
	seen[reflect.TypeFor[time.Time]()] = true
	walk(reflect.TypeFor[model.Snapshot]())
}
