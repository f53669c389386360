package truth

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// screenScenarios ask what is said of chips that are in trouble.
func screenScenarios() []scenario {
	return []scenario{
		{"firmware hangs, one sample", fast | alone, hung},
		{"off the bus when the driver bound it", fast, deadWhenBound},
		{"off the bus while it ran", 0, dead},
		{"idle boards", fast | alone, idle},
		{"no driver", 0, noDriver},
		{"tt-smi -s", fast, snapshotToStdout},
	}
}

const exitTrouble = 15

// hung: everything reads well, but the heart has stopped. A single look does
// not see it, and says that; who looks twice sees it.
func hung(s *stage) {
	s.on("n150,p150a")
	s.ctl("hang", "0")
	d := s.snapshot().Device(0)
	said := string(d.State)
	if d.State == model.StateOK && d.StateReason.Cause == model.HeartbeatUnseen {
		said = "ok, if its heart beats"
	}
	s.enter(row{what: "device 0 at the first look", truth: "hung", said: said, verdict: map[bool]verdict{true: missing, false: wrong}[said != "ok"], why: string(d.StateReason.Cause)})
	watched := s.daemon()
	s.until("ttmond has looked long enough", func() bool { return s.daemonSnapshot(watched).Device(0).State != model.StateOK })
	snap := s.daemonSnapshot(watched)
	s.fact("device 0, watched", string(model.StateHung), string(snap.Device(0).State))
	s.fact("device 1, watched", string(model.StateOK), string(snap.Device(1).State))
	s.fact("its frozen temperature is shown", "false", fmt.Sprint(snap.Device(0).Temperature.Known()))
}

func deadWhenBound(s *stage) {
	s.with(sim.Options{Boards: "n150,p150a", Dead: "0"})
	r := s.ttmon("smi", "--json")
	snap := s.decode(r)
	s.fact("device 0 is ok", "false", fmt.Sprint(snap.Device(0).State == model.StateOK))
	s.fact("exit code", fmt.Sprint(exitTrouble), fmt.Sprint(r.code))
	s.fact("an invented PCIe generation", "false", fmt.Sprint(strings.Contains(s.ttmon("smi", "-q", "-i", "0").out, "64.0 GT/s")))
}

func dead(s *stage) {
	s.on("n150,p150a")
	s.ctl("dead", "0")
	r := s.ttmon("smi", "--json")
	s.fact("device 0 is", string(model.StateHung), string(s.decode(r).Device(0).State))
	s.fact("exit code", fmt.Sprint(exitTrouble), fmt.Sprint(r.code))
}

func idle(s *stage) {
	snap := s.on("n300,p150a").snapshot()
	s.device(snap, 0, nil, tracked...)
	s.device(snap, 1, nil, tracked...)
	s.fact("ttmon stale", "nothing stale", strings.SplitN(s.ttmon("stale").out, ":", 2)[0])
}

func noDriver(s *stage) {
	r := s.with(sim.Options{Boards: "n150", Driver: "none"}).ttmon("smi", "--json")
	s.fact("exit code", "9", fmt.Sprint(r.code))
}

// snapshotToStdout: scripts pipe what tt-smi -s prints.
func snapshotToStdout(s *stage) {
	r := s.on("n150").ttmon("smi", "-s")
	s.fact("it prints JSON", "true", fmt.Sprint(json.Valid([]byte(r.out))))
}
