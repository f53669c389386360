package text_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

// shown is the host of the README: two programs, a link below what it could
// be, and something that a dead process left.
func shown() *model.Snapshot {
	s := sample.None()
	n300, one, two := sample.N300(0, 0x41), sample.P150a(1, 0x42), sample.P150a(2, 0x43)
	n300.PowerLimit = model.Value(85.0)
	n300.Temperature, n300.Power, n300.Activity.Ratio = model.Value(62.0), model.Value(60.0), model.Value(0.74)
	one.Temperature, one.Power, one.Activity.Ratio = model.Value(56.0), model.Value(60.0), model.Value(0.35)
	two.Temperature, two.Power, two.Activity.Ratio, two.AICLK = model.Value(35.0), model.Value(16.0), model.Value(0.0), model.Value(800.0)
	sample.Allocate(&n300, 18*sample.GiB, 60*sample.MiB)
	sample.Doubt(&n300, model.Unsure)
	for i := range n300.Chips { // half of it on each
		m := &n300.Chips[i].Memory
		m.Tracking = model.TrackOK
		m.Pools[model.DRAM].Used = model.BoundBytes(9*sample.GiB, model.Unsure)
		m.Pools[model.L1].Used = model.BoundBytes(30*sample.MiB, model.Unsure)
	}
	sample.Allocate(&one, 512*sample.MiB, 8*sample.MiB)
	sample.Allocate(&two, 0, 0)
	one.PCIe.Width, one.PCIe.Degraded = model.Value(8), model.Value(true)
	serve := sample.Serve(182034, sample.Use(&n300, 18*sample.GiB, 60*sample.MiB))
	serve.SlurmJob, serve.Release = "4711", model.Value("0.81.1")
	sample.DoubtUse(&serve, model.Unsure)
	serve.Doubts = []model.Doubt{{Kind: model.OtherThreads, Release: "0.81.1"}, {Kind: model.GraphCapture, Release: "0.81.1"}}
	bench := sample.Serve(183377, sample.Use(&one, 512*sample.MiB, 8*sample.MiB))
	bench.UID, bench.User, bench.SystemdUnit = model.Value(1000), model.Value("anna"), ""
	bench.CPU = model.Value(12.0)
	bench.Cmdline, bench.StartTime = model.Value("python3 bench.py --batch 32"), sample.Time.Add(-41*time.Minute)
	s.Devices, s.Processes = []model.Device{n300, one, two}, []model.Process{serve, bench}
	s.StaleSlots = []model.StaleSlot{{
		Region: "/dev/shm/tt_device_1_memory", Device: 2, PID: 4242, Name: "python", Updated: sample.Time.Add(-3 * time.Hour),
		Bytes: model.PoolBytes{model.DRAM: model.ExactBytes(128 * sample.MiB)},
	}}
	return s
}

// The first picture in the README is what the program prints; make update
// rewrites it.
func TestReadme(t *testing.T) {
	const path, fence = "../../../README.md", "```\n"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(old), fence)
	_, tail, closed := strings.Cut(rest, fence)
	if !ok || !closed {
		t.Fatalf("%s has no place for the picture", path)
	}
	o := utc
	o.Width = 100
	golden.Check(t, path, []byte(head+fence+string(text.AppendTable(nil, shown(), o))+fence+tail))
}
