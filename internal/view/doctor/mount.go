package doctor

import (
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
)

// mounted says what of the host a container does not see, and reports whether
// there is anything. It does not examine a tree made for --root.
func (e *examiner) mounted() (limited bool) {
	m := e.Setup.Mount
	if m == nil || e.Snapshot.Simulated && !m.Proc {
		return false
	}
	dir := words.Escape(m.Dir)
	say := func(l Level, code, text, do string) {
		limited = true
		e.addHost(Visibility, l, code, text, do)
	}
	if !m.Proc {
		say(Warning, "mount_partial", "the host's /proc is not below "+dir+": what is mounted below the host's root was left out",
			"mount it with all that is below it: -v /:/host:ro,rslave (Kubernetes: a hostPath / with mountPropagation: HostToContainer)")
		return limited
	}
	if !m.Shm {
		say(Warning, "mount_shm", "the host's /dev/shm is not below "+dir+": what tt-metal accounts there is out of sight",
			"mount the host's root with all that is below it: -v /:/host:ro,rslave")
	}
	if same, known := m.SamePIDs.Get(); known && !same {
		say(Warning, "pid_namespace", "this container has its own PID namespace: ttmond cannot identify its clients or watch allocators",
			"run it with --pid=host (Kubernetes: hostPID: true)")
	}
	if len(m.Lacking) > 0 {
		say(Hint, "capabilities", "this container is without "+strings.Join(m.Lacking, ", ")+
			": other users' processes and regions (PTRACE, DAC_READ_SEARCH) or allocators (BPF, PERFMON) are out of sight",
			"add them: --cap-add="+strings.ReplaceAll(strings.Join(m.Lacking, ","), "CAP_", ""))
	}
	return limited
}
