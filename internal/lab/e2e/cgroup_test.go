package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// containerID is as all runtimes make them.
const containerID = "3f4e2d1c0b9a88776655443322110000ffeeddccbbaa99887766554433221100"

// TestBelongsTo puts a workload into the control groups that container
// runtimes, Kubernetes, Slurm and systemd make, and looks for its owner in
// every kind of output.
func TestBelongsTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, group string
		table       string // in the Job column
		fields      map[string]string
		check       func(*model.Process) bool
	}{
		{
			"docker", "docker/" + containerID, "docker 3f4e2d1c0b9a",
			map[string]string{"container.runtime": "docker", "container.id": containerID},
			func(p *model.Process) bool { return p.Container.Runtime == "docker" && p.Container.ID == containerID },
		},
		{
			"docker of systemd", "system.slice/docker-" + containerID + ".scope", "docker 3f4e2d1c0b9a",
			map[string]string{"container.runtime": "docker"},
			func(p *model.Process) bool { return p.Container.Runtime == "docker" && p.Container.ID == containerID },
		},
		{
			"podman", "machine.slice/libpod-" + containerID + ".scope/container", "podman 3f4e2d1c0b9a",
			map[string]string{"container.runtime": "podman", "container.id": containerID},
			func(p *model.Process) bool { return p.Container.Runtime == "podman" && p.Container.ID == containerID },
		},
		{
			"containerd in a pod",
			"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a2b3c4d_0001_0002_0003_1a2b3c4d5e6f.slice/cri-containerd-" + containerID + ".scope",
			"pod 1a2b3c4d",
			map[string]string{"container.runtime": "containerd", "pod.uid": "1a2b3c4d-0001-0002-0003-1a2b3c4d5e6f"},
			func(p *model.Process) bool { return p.Container.Pod == "1a2b3c4d-0001-0002-0003-1a2b3c4d5e6f" },
		},
		{
			"cri-o in a pod",
			"kubepods/besteffort/pod1a2b3c4d-0001-0002-0003-1a2b3c4d5e6f/crio-" + containerID, "pod 1a2b3c4d",
			map[string]string{"container.runtime": "cri-o"},
			func(p *model.Process) bool { return p.Container.Runtime == "cri-o" && p.Container.ID == containerID },
		},
		{
			"slurm", "slurm/uid_1000/job_4711/step_0/task_0", "slurm 4711",
			map[string]string{"slurm.job_id": "4711"},
			func(p *model.Process) bool { return p.SlurmJob == "4711" },
		},
		{
			"slurm 24", "system.slice/slurmstepd.scope/job_4712/step_batch/user/task_0", "slurm 4712",
			map[string]string{"slurm.job_id": "4712"},
			func(p *model.Process) bool { return p.SlurmJob == "4712" },
		},
		{
			"unit", "system.slice/vllm.service", " vllm ",
			map[string]string{"systemd.unit": "vllm.service"},
			func(p *model.Process) bool { return p.SystemdUnit == "vllm.service" },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := start(t, sim.Options{Boards: "n150"})
			ctl(t, h, "run", "name=llama,devices=0")
			p := only(t, smi(t, h, 0), "llama")
			moveInto(t, h, []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, c.group, p.PID)
			p = only(t, smi(t, h, 0), "llama")
			if !c.check(&p) {
				t.Errorf("in JSON: container %+v, job %q, unit %q", p.Container, p.SlurmJob, p.SystemdUnit)
			}
			if r := runIn(t, h, "smi"); !strings.Contains(r.out, c.table) {
				t.Errorf("the table has no %q:\n%s", c.table, r.out)
			}
			for field, want := range c.fields {
				r := runIn(t, h, "smi", "--query-apps="+field, "--format=csv,noheader")
				if got := strings.TrimSpace(r.out); got != want {
					t.Errorf("%s: %q, want %q %s", field, got, want, r.err)
				}
			}
		})
	}
}

// TestBelongsToOld: control groups of version 1, a hierarchy per controller.
func TestBelongsToOld(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "run", "name=llama,devices=0")
	p := only(t, smi(t, h, 0), "llama")
	moveInto(t, h, []string{"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/pids"}, "docker/"+containerID, p.PID)
	p = only(t, smi(t, h, 0), "llama")
	if p.Container.Runtime != "docker" || p.Container.ID != containerID {
		t.Errorf("container %+v", p.Container)
	}
}

// moveInto makes a control group in the first hierarchy that is there, on the
// real machine, and moves a process there. Both are gone when the test is over.
func moveInto(t *testing.T, h *sim.Host, hierarchies []string, group string, pid int) {
	t.Helper()
	var tried []string
	for _, mount := range hierarchies {
		top := filepath.Join(mount, fmt.Sprintf("ttmon-e2e-%d", os.Getpid()))
		dir := filepath.Join(top, group)
		if _, err := os.Stat(filepath.Join(mount, "cgroup.procs")); err != nil {
			tried = append(tried, err.Error())
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			tried = append(tried, err.Error())
			continue
		}
		t.Cleanup(func() {
			if err := h.Close(); err != nil { // its processes hold the group
				t.Error(err)
			}
			for d := dir; d != mount; d = filepath.Dir(d) {
				if err := os.Remove(d); err != nil {
					t.Errorf("removing the control group: %v", err)
				}
			}
		})
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			t.Fatalf("moving %d into a control group: %v", pid, err)
		}
		return
	}
	t.Skipf("no control group can be made here: %s", strings.Join(tried, "; "))
}
