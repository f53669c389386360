package proc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

const (
	id64  = "3f2a9d0c4b6e8f10a1b2c3d4e5f60718293a4b5c6d7e8f90112233445566778f"
	other = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	uid   = "7b1d2c3e-4f50-6172-8394-a5b6c7d8e9f0"
	uid_  = "7b1d2c3e_4f50_6172_8394_a5b6c7d8e9f0"
)

func container(runtime, id string) placement {
	return placement{container: model.Container{Runtime: runtime, ID: id}}
}

func inPod(runtime, id, pod string) placement {
	return placement{container: model.Container{Runtime: runtime, ID: id, Pod: pod}}
}

// Lines as they are found on real hosts, by the tool that makes them.
var cgroupCases = []struct {
	name, lines string
	want        placement
}{
	{"root v2", "0::/", placement{}},
	{"nothing", "", placement{}},
	{"docker, systemd driver, v2", "0::/system.slice/docker-" + id64 + ".scope", container("docker", id64)},
	{"docker, cgroupfs driver, v2", "0::/docker/" + id64, container("docker", id64)},
	{"docker, v1", "12:pids:/docker/" + id64 + "\n1:name=systemd:/docker/" + id64 + "\n0::/system.slice/containerd.service", container("docker", id64)},
	{"docker rootless", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + id64 + ".scope", container("docker", id64)},
	{"docker, custom parent", "0::/ml-jobs/" + id64, container("", id64)},
	{"docker, systemd inside", "0::/system.slice/docker-" + id64 + ".scope/system.slice/nginx.service", container("docker", id64)},
	{"docker in docker", "0::/docker/" + other + "/docker/" + id64, container("docker", id64)},
	{"docker, moby namespace of containerd", "0::/moby/" + id64, container("docker", id64)},
	{"ecs task", "0::/ecstasks.slice/ecstasks-0123.slice/docker-" + id64 + ".scope", container("docker", id64)},
	{"nerdctl", "0::/system.slice/nerdctl-" + id64 + ".scope", container("containerd", id64)},
	{"nerdctl, cgroupfs", "0::/default/" + id64, container("containerd", id64)},
	{"containerd, cgroupfs spelling of systemd", "0::/system.slice:cri-containerd:" + id64, container("containerd", id64)},

	{"k8s burstable, systemd", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uid_ + ".slice/cri-containerd-" + id64 + ".scope", inPod("containerd", id64, uid)},
	{"k8s besteffort, systemd", "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + uid_ + ".slice/cri-containerd-" + id64 + ".scope", inPod("containerd", id64, uid)},
	{"k8s guaranteed, systemd", "0::/kubepods.slice/kubepods-pod" + uid_ + ".slice/cri-containerd-" + id64 + ".scope", inPod("containerd", id64, uid)},
	{"k8s burstable, cgroupfs", "11:memory:/kubepods/burstable/pod" + uid + "/" + id64, inPod("", id64, uid)},
	{"k8s guaranteed, cgroupfs", "0::/kubepods/pod" + uid + "/" + id64, inPod("", id64, uid)},
	{"k8s cri-o", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uid_ + ".slice/crio-" + id64 + ".scope", inPod("cri-o", id64, uid)},
	{"k8s cri-o, cgroupfs", "0::/kubepods/besteffort/pod" + uid + "/crio-" + id64, inPod("cri-o", id64, uid)},
	{"k8s cri-o, process deeper", "0::/kubepods.slice/kubepods-pod" + uid_ + ".slice/crio-" + id64 + ".scope/container", inPod("cri-o", id64, uid)},
	{"k8s conmon of cri-o", "0::/kubepods.slice/kubepods-pod" + uid_ + ".slice/crio-conmon-" + id64 + ".scope", inPod("", "", uid)},
	{"k8s docker", "0::/kubepods.slice/kubepods-pod" + uid_ + ".slice/docker-" + id64 + ".scope", inPod("docker", id64, uid)},
	{"k8s static pod", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0123456789abcdef0123456789abcdef.slice/cri-containerd-" + id64 + ".scope", inPod("containerd", id64, "0123456789abcdef0123456789abcdef")},
	{"k8s, containerd's odd form", "1:name=systemd:/system.slice/containerd.service/kubepods-burstable-pod" + uid_ + ".slice:cri-containerd:" + id64, inPod("containerd", id64, uid)},
	{"kind", "0::/docker/" + other + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" + uid_ + ".slice/cri-containerd-" + id64 + ".scope", inPod("containerd", id64, uid)},
	{"k3s", "0::/system.slice/k3s.service/kubepods/besteffort/pod" + uid + "/" + id64, inPod("", id64, uid)},
	{"seen from inside a cgroup namespace", "0::/../../kubepods-pod" + uid_ + ".slice/cri-containerd-" + id64 + ".scope", inPod("containerd", id64, uid)},

	{"podman rootful", "0::/machine.slice/libpod-" + id64 + ".scope/container", container("podman", id64)},
	{"podman rootless", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id64 + ".scope/container", container("podman", id64)},
	{"podman, v1", "9:devices:/machine.slice/libpod-" + id64 + ".scope", container("podman", id64)},
	{"podman, cgroupfs", "0::/libpod_parent/libpod-" + id64, container("podman", id64)},
	{"podman in a pod of its own", "0::/machine.slice/machine-libpod_pod_" + other + ".slice/libpod-" + id64 + ".scope", container("podman", id64)},
	{"podman quadlet", "0::/system.slice/llama.service/libpod-payload-" + id64, placement{container: model.Container{Runtime: "podman", ID: id64}, unit: "llama.service"}},
	{"conmon of podman", "0::/machine.slice/libpod-conmon-" + id64 + ".scope", placement{}},

	{"lxc, v1", "8:devices:/lxc/web\n1:name=systemd:/lxc/web/system.slice/ssh.service", container("lxc", "web")},
	{"lxc, proxmox", "0::/lxc/101/ns/system.slice/llama.service", container("lxc", "101")},
	{"lxc, payload", "0::/lxc.payload.web01/init.scope", container("lxc", "web01")},
	{"lxc, payload of version 3", "0::/lxc.payload/web01", container("lxc", "web01")},
	{"lxc, docker inside", "0::/lxc/101/ns/system.slice/docker-" + id64 + ".scope", container("docker", id64)},
	{"lxc monitor is on the host", "0::/lxc.monitor.web01", placement{}},
	{"libvirt lxc", `0::/machine.slice/machine-lxc\x2d4242\x2dbuild\x2dbox.scope/libvirt`, container("lxc", "build-box")},
	{"nspawn service", `0::/machine.slice/systemd-nspawn@build\x2dbox.service/payload/system.slice/x.service`, placement{container: model.Container{Runtime: "systemd-nspawn", ID: "build-box"}, unit: `systemd-nspawn@build\x2dbox.service`}},
	{"nspawn scope", "0::/machine.slice/machine-box.scope/payload", container("systemd-nspawn", "box")},
	{"virtual machine", `0::/machine.slice/machine-qemu\x2d1\x2dvm.scope/libvirt/emulator`, placement{unit: `machine-qemu\x2d1\x2dvm.scope`}},

	{"slurm, v1", "4:freezer:/slurm/uid_1000/job_4711/step_0/task_0", placement{slurmJob: "4711", slurmStep: "0"}},
	{"slurm, v1, node name, hybrid", "9:memory:/slurm_node7/uid_1000/job_4711/step_batch\n1:name=systemd:/system.slice/slurmd.service\n0::/system.slice/slurmd.service", placement{slurmJob: "4711", slurmStep: "batch"}},
	{"slurm, v2", "0::/system.slice/slurmstepd.scope/job_4711/step_interactive/user/task_special", placement{slurmJob: "4711", slurmStep: "interactive"}},
	{"slurm, v2, several slurmd", "0::/system.slice/node7_slurmstepd.scope/job_12/step_0/user/task_0", placement{slurmJob: "12", slurmStep: "0"}},
	{"slurm, by a user who made the groups", "0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_4711/step_0", placement{unit: "user@1000.service"}},
	{"slurmd itself", "0::/system.slice/slurmd.service", placement{unit: "slurmd.service"}},
	{"a job group that a user made", "0::/batch/job_4711", placement{}},
	{"docker in a slurm job", "0::/system.slice/slurmstepd.scope/job_9/step_0/user/task_0/docker/" + id64, placement{container: model.Container{Runtime: "docker", ID: id64}, slurmJob: "9", slurmStep: "0"}},

	{"service", "0::/system.slice/llama-server.service", placement{unit: "llama-server.service"}},
	{"service with delegation", "0::/system.slice/llama.service/workers/0", placement{unit: "llama.service"}},
	{"service in v1", "5:cpu,cpuacct:/system.slice\n1:name=systemd:/system.slice/cron.service", placement{unit: "cron.service"}},
	{"systemd's hierarchy before version 2", "1:name=systemd:/system.slice/a.service\n0::/system.slice/b.service", placement{unit: "a.service"}},
	{"version 2 before controllers", "3:cpu:/system.slice/a.service\n0::/system.slice/b.service", placement{unit: "b.service"}},
	{"user service", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/train.service", placement{unit: "train.service"}},
	{"user manager", "0::/user.slice/user-1000.slice/user@1000.service/init.scope", placement{unit: "user@1000.service"}},
	{"user scope of systemd-run", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/train.scope", placement{unit: "train.scope"}},
	{"login session", "0::/user.slice/user-1000.slice/session-3.scope", placement{}},
	{"login session of a display manager", "0::/user.slice/user-1000.slice/session-c1.scope", placement{}},
	{"transient scope", "0::/system.slice/run-r0123456789abcdef.scope", placement{unit: "run-r0123456789abcdef.scope"}},
	{"escaped by systemd", "0::/system.slice/_cpu.service", placement{unit: "cpu.service"}},
	{"pid 1", "0::/init.scope", placement{}},
	{"removed cgroup", "0::/system.slice/docker-" + id64 + ".scope (deleted)", container("docker", id64)},
	{"a colon in the path", "0::/system.slice/dbus-:1.2-org.x@0.service", placement{unit: "dbus-:1.2-org.x@0.service"}},
	{"git hash is no container", "0::/ci/0123456789abcdef0123456789abcdef01234567", placement{}},
	{"no pod outside kubepods", "0::/pod" + uid, placement{}},
	{"broken lines", "garbage\n:\n0:\n0::\n::::", placement{}},
}

func TestParseCgroup(t *testing.T) {
	for _, c := range cgroupCases {
		t.Run(c.name, func(t *testing.T) {
			got := parseCgroup([]byte(c.lines + "\n"))
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(placement{})); diff != "" {
				t.Errorf("%s\n%s", c.lines, diff)
			}
		})
	}
}

func FuzzParseCgroup(f *testing.F) {
	for _, c := range cgroupCases {
		f.Add([]byte(c.lines))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := parseCgroup(b)
		if strings.ContainsAny(p.unit, "/\n") {
			t.Errorf("unit %q is not one name of a path", p.unit)
		}
		if p.container.Pod != "" && !isPodUID(p.container.Pod) {
			t.Errorf("pod %q", p.container.Pod)
		}
		if p.slurmJob != "" && !isDigits(p.slurmJob) {
			t.Errorf("job %q", p.slurmJob)
		}
		if p.container.Runtime != "" && p.container.ID == "" {
			t.Errorf("a runtime without a container: %+v", p.container)
		}
	})
}
