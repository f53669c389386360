package words

import (
	"fmt"
)

// WatchObstacle says why allocators cannot be watched through the kernel, and
// what helps. The kinds are source/uprobe's.
func WatchObstacle(kind string, err error) string {
	switch kind {
	case "privilege":
		return "ttmond has neither root's rights nor CAP_BPF and CAP_PERFMON"
	case "bpf":
		return fmt.Sprintf("the kernel has no BPF, or forbids it (seccomp, or a setting of the machine): %v", err)
	case "btf":
		return "the kernel has no BTF type information (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF"
	case "uprobemulti":
		return fmt.Sprintf("the kernel cannot watch several functions at once; Linux 6.6 can: %v", err)
	case "lockdown":
		return "the kernel is locked down (lockdown=confidentiality): it does not allow watching programs"
	case "memlock":
		return "the limit of locked memory is too low (ulimit -l); CAP_SYS_RESOURCE or LimitMEMLOCK=infinity helps"
	case "paranoid":
		return fmt.Sprintf("kernel.perf_event_paranoid keeps the kernel's records of mappings from ttmond (2 or less allows them, or CAP_SYS_ADMIN): %v", err)
	default:
		return fmt.Sprintf("the kernel refused: %v", err)
	}
}
