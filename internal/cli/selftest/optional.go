package selftest

import (
	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// optional lists the parts of ttmon that do not run here, and what each would add.
func (t *test) optional(r *report.Report, s *model.Snapshot) {
	note := func(what, text string) {
		r.Add(report.Row{Part: report.Optional, What: what, Verdict: report.Unknown, Note: text})
	}
	switch {
	case t.health == nil:
		note("ttmond", "not running: it would show every user's memory, and the allocations of unmodified programs")
	case !t.watchesThroughKernel():
		note("uprobes", uprobesMissing(t.health.Uprobe)+": ttmond would see every allocation of unmodified programs")
	}
	if t.host.Server() == "" {
		note("ttmon-server", "not running: it would keep history, events and alerts, and serve the page")
	}
	if len(s.Devices) > 0 && s.Devices[0].Telemetry.ReadAt.IsZero() {
		note("firmware table", "off: ttmond --firmware=table would add board power, memory temperatures and link states")
	}
}

// uprobesMissing is why a ttmond does not watch through the kernel.
func uprobesMissing(w *apitype.Watch) string {
	if w == nil || w.Reason == "" {
		return "off"
	}
	return string(w.State) + " (" + w.Reason + ")"
}
