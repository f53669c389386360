package proc

import (
	"bytes"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// placement is the container, job or unit that a process's cgroup belongs to.
type placement struct {
	container model.Container
	slurmJob  string
	slurmStep string
	unit      string // systemd unit on the host, not one inside a container
}

// parseCgroup reads /proc/<pid>/cgroup: a line "id:controllers:path" for each
// version 1 hierarchy and "0::path" for version 2. On hybrid hosts a container
// or job may be visible in only some of them, so all are read; for the unit
// systemd's own hierarchy takes precedence, then version 2.
func parseCgroup(b []byte) placement {
	var all placement
	unitRank := 0
	for line := range bytes.Lines(b) {
		_, rest, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), ":")
		controllers, path, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || path == "/" {
			continue
		}
		p := parseCgroupPath(path)
		if all.container == (model.Container{}) {
			all.container = p.container
		}
		if all.slurmJob == "" {
			all.slurmJob, all.slurmStep = p.slurmJob, p.slurmStep
		}
		if rank := unitSource(controllers); p.unit != "" && rank > unitRank {
			all.unit, unitRank = p.unit, rank
		}
	}
	all.dropRuntimeUnits()
	return all
}

func unitSource(controllers string) (rank int) {
	switch controllers {
	case "name=systemd":
		return 3
	case "":
		return 2
	default:
		return 1
	}
}

// dropRuntimeUnits drops a unit that is only the daemon or wrapper of the
// container or job: it says nothing about the workload. Podman and nspawn run
// below the unit that started them, so theirs is kept.
func (p *placement) dropRuntimeUnits() {
	inContainer := p.container != (model.Container{})
	own := p.container.Runtime == "podman" || p.container.Runtime == "systemd-nspawn"
	switch {
	case inContainer && (!own || strings.HasPrefix(p.unit, "user@")),
		p.container.Pod != "",
		p.slurmJob != "" && strings.Contains(p.unit, "slurm"):
		p.unit = ""
	}
}

// parseCgroupPath walks a path from the outside in. Of nested containers the
// innermost counts; units inside a container belong to it, not to the host.
func parseCgroupPath(path string) placement {
	var p placement
	var kube, slurm, inside, users bool
	parent := ""
	for name := range strings.SplitSeq(strings.TrimSuffix(path, " (deleted)"), "/") {
		if name == "" || name == ".." { // ".." leads out of our cgroup namespace
			continue
		}
		kube = kube || strings.Contains(name, "kubepods")
		// Below its own service a user may create any group.
		users = users || name == "user.slice" || strings.HasPrefix(name, "user@")
		slurm = slurm || !users && strings.Contains(name, "slurm")
		if uid, ok := podUID(name); ok && kube {
			p.container, inside = model.Container{Pod: uid}, true
		}
		if runtime, id, ok := containerOf(parent, name); ok {
			p.container.Runtime, p.container.ID, inside = runtime, id, true
			if runtime == "systemd-nspawn" && strings.HasSuffix(name, ".service") {
				p.unit = name
			}
		} else if !inside {
			p.unit = unitOf(name, p.unit)
		}
		if job, ok := strings.CutPrefix(name, "job_"); ok && slurm && isDigits(job) {
			p.slurmJob = job
		}
		if step, ok := strings.CutPrefix(name, "step_"); ok && p.slurmJob != "" && isStep(step) {
			p.slurmStep = step
		}
		parent = name
	}
	return p
}

// unitOf returns the unit that name stands for, or outer. Scopes of login
// sessions, managers and job daemons are cgroups, not units that a user
// started.
func unitOf(name, outer string) string {
	name = strings.TrimPrefix(name, "_") // systemd's escape of reserved names
	switch {
	case strings.HasSuffix(name, ".service"), strings.HasSuffix(name, ".socket"),
		strings.HasSuffix(name, ".mount"), strings.HasSuffix(name, ".swap"):
		return name
	case !strings.HasSuffix(name, ".scope"), name == "init.scope",
		strings.HasPrefix(name, "session-"), strings.HasSuffix(name, "slurmstepd.scope"),
		strings.HasPrefix(name, "crio-conmon-"), strings.HasPrefix(name, "libpod-conmon-"):
		return outer
	default:
		return name
	}
}

// isStep reports whether a step is a number or one of Slurm's own.
func isStep(s string) bool {
	return isDigits(s) || s == "batch" || s == "extern" || s == "interactive"
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
