package proc

import (
	"strconv"
	"strings"
)

// containerPrefixes are the names that runtimes put before a container's id,
// in scopes of the systemd driver and in directories of the cgroupfs driver.
var containerPrefixes = []struct{ prefix, runtime string }{
	{"docker", "docker"},
	{"cri-containerd", "containerd"},
	{"nerdctl", "containerd"},
	{"crio", "cri-o"},
	{"libpod", "podman"},
	{"libpod-payload", "podman"}, // below the unit of a quadlet
}

// runtimeBelow is the runtime whose containers are bare ids in a directory. That of
// a bare id elsewhere (in kubepods, or below --cgroup-parent) cannot be derived from
// the path and stays empty.
func runtimeBelow(parent string) string {
	switch parent {
	case "docker", "moby": // moby is Docker's namespace in containerd
		return "docker"
	case "default", "k8s.io":
		return "containerd"
	}
	return ""
}

// containerOf returns the container that the cgroup name below parent is, if
// any.
func containerOf(parent, name string) (runtime, id string, ok bool) {
	base := strings.TrimSuffix(name, ".scope")
	// "slice:prefix:id" is how a runtime on the cgroupfs driver spells what
	// was meant for systemd.
	if parts := strings.Split(base, ":"); len(parts) == 3 && isContainerID(parts[2]) {
		return runtimeOf(parts[1]), parts[2], true
	}
	if i := strings.LastIndexByte(base, '-'); i > 0 && isContainerID(base[i+1:]) {
		if runtime := runtimeOf(base[:i]); runtime != "" {
			return runtime, base[i+1:], true
		}
	}
	if len(base) == 64 && isContainerID(base) {
		return runtimeBelow(parent), base, true
	}
	return machineOf(parent, name)
}

// machineOf is for system containers, which have a name instead of an id.
func machineOf(parent, name string) (runtime, id string, ok bool) {
	if parent == "lxc" || parent == "lxc.payload" {
		return "lxc", name, true
	}
	if id, ok := strings.CutPrefix(name, "lxc.payload."); ok && id != "" {
		return "lxc", id, true
	}
	if id, ok := between(name, "systemd-nspawn@", ".service"); ok {
		return "systemd-nspawn", unescapeUnit(id), true
	}
	machine, ok := between(name, "machine-", ".scope")
	if !ok {
		return "", "", false
	}
	machine = unescapeUnit(machine)
	if strings.HasPrefix(machine, "qemu-") {
		return "", "", false // a virtual machine: the process is its emulator
	}
	if rest, ok := strings.CutPrefix(machine, "lxc-"); ok { // libvirt: lxc-<number>-<name>
		if n, id, ok := strings.Cut(rest, "-"); ok && isDigits(n) {
			return "lxc", id, true
		}
	}
	return "systemd-nspawn", machine, true
}

func runtimeOf(prefix string) string {
	for _, p := range containerPrefixes {
		if p.prefix == prefix {
			return p.runtime
		}
	}
	return ""
}

// isContainerID accepts what runtimes use: 64 hex digits, or 12 at the least
// where a tool shortens them.
func isContainerID(s string) bool {
	return len(s) >= 12 && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// podUID finds the uid in the cgroup name of a Kubernetes pod: "pod<uid>" of
// the cgroupfs driver, "kubepods-burstable-pod<uid>.slice" of the systemd
// one, which spells "-" as "_". Uids are UUIDs; those of static pods are 32
// hex digits.
func podUID(name string) (uid string, ok bool) {
	name, _, _ = strings.Cut(name, ":") // "slice:prefix:id"
	name = strings.TrimSuffix(name, ".slice")
	if i := strings.LastIndex(name, "-pod"); i >= 0 {
		name = name[i+1:]
	}
	uid, ok = strings.CutPrefix(name, "pod")
	if !ok {
		return "", false
	}
	uid = strings.ReplaceAll(uid, "_", "-")
	return uid, isPodUID(uid)
}

func isPodUID(s string) bool {
	hex := strings.ReplaceAll(s, "-", "")
	dashes := len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-'
	return len(hex) == 32 && (dashes || len(s) == 32) && strings.Trim(hex, "0123456789abcdefABCDEF") == ""
}

// between returns the text between a prefix and a suffix, if it is not empty.
func between(s, prefix, suffix string) (string, bool) {
	s, ok := strings.CutPrefix(s, prefix)
	s, ok2 := strings.CutSuffix(s, suffix)
	return s, ok && ok2 && s != ""
}

// unescapeUnit undoes systemd's \xNN.
func unescapeUnit(s string) string {
	if !strings.Contains(s, `\x`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i+4 <= len(s) && s[i:i+2] == `\x` {
			if v, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
