package doctor

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

func (e *examiner) permissions() {
	if len(e.Snapshot.Devices) == 0 {
		return
	}
	if len(e.Setup.Nodes) == 0 {
		e.addHost(Permissions, Warning, "nodes_absent", "there are no device nodes in /dev/tenstorrent: programs cannot use the boards from here",
			"in a container, pass them on (docker run --device /dev/tenstorrent); on a host, see whether udev runs")
		return
	}
	var denied, restricted []int
	for _, n := range e.Setup.Nodes {
		switch {
		case !n.Usable:
			denied = append(denied, n.Index)
		case n.Mode&0o066 != 0o066:
			restricted = append(restricted, n.Index)
		}
	}
	rule := `install tt-kmd's udev rule (50-tenstorrent.rules makes the nodes 0666), then udevadm trigger`
	if len(denied) > 0 {
		e.add(Finding{
			Area: Permissions, Level: Warning, Code: "nodes_denied", Devices: denied, Do: rule,
			Text: "you may not use the nodes of " + words.Ranges(denied) + " in /dev/tenstorrent: programs that you start cannot open them; ttmon does not need them",
		})
	}
	if len(restricted) > 0 {
		e.add(Finding{
			Area: Permissions, Level: Hint, Code: "nodes_narrow", Devices: restricted, Do: rule + ", unless that is what you want",
			Text: "not every user may use the nodes of " + words.Ranges(restricted),
		})
	}
	if len(denied)+len(restricted) == 0 {
		e.addHost(Permissions, OK, "nodes", "all users may open the device nodes", "")
	}
}

// countIOMMU counts PCI functions by what an IOMMU does with their addresses.
func (e *examiner) countIOMMU() map[model.IOMMU]int {
	n := map[model.IOMMU]int{}
	for _, f := range e.Setup.Functions {
		if f.IOMMU.Known() {
			n[f.IOMMU.V]++
		}
	}
	return n
}

func (e *examiner) iommu() {
	n := e.countIOMMU()
	switch {
	case len(e.Setup.Functions) == 0:
	case len(n) == 0:
		e.addHost(IOMMU, Hint, "iommu_unknown", "cannot determine whether an IOMMU translates addresses", "")
	case n[model.Translated] == len(e.Setup.Functions):
		e.addHost(IOMMU, OK, "iommu", "addresses are translated: tt-metal pins ordinary memory and needs no huge pages", "")
	case n[model.Translated] > 0:
		e.addHost(IOMMU, Hint, "iommu_mixed", fmt.Sprintf("addresses are translated for %d of %d boards", n[model.Translated], len(e.Setup.Functions)), "")
	case n[model.PassThrough] > 0:
		e.addHost(IOMMU, OK, "iommu_passthrough", "the IOMMU is in passthrough mode (iommu=pt): tt-metal needs huge pages", "")
	default:
		e.addHost(IOMMU, OK, "iommu_none", "there is none, or it is disabled: tt-metal needs huge pages", "")
	}
}

func (e *examiner) hugePages() {
	if len(e.Setup.Functions) == 0 {
		return
	}
	const setup = "install tenstorrent-hugepages.service of tt-system-tools, or set hugepagesz=1G hugepages=N on the kernel's command line"
	need := len(e.Setup.Functions) - e.countIOMMU()[model.Translated]
	pages, known := e.Setup.HugePages.Get()
	free := ""
	if n, ok := e.Setup.HugeFree.Get(); ok {
		free = fmt.Sprintf(", %d free", n)
	}
	switch {
	case need == 0:
		e.addHost(HugePages, OK, "hugepages_unneeded", "not needed with this IOMMU", "")
	case !known:
		e.addHost(HugePages, Warning, "hugepages_unsupported", "this kernel or processor has no 1 GiB pages: "+e.Setup.HugePages.Status.String(),
			"switch on an IOMMU that translates, or use a kernel with pages of 1 GiB")
	case pages < need:
		e.addHost(HugePages, Warning, "hugepages_few", fmt.Sprintf("%s of 1 GiB for %s: tt-metal needs at least one each", count(pages, "page"), count(need, "board")), setup)
	case e.Setup.HugeMount == "":
		e.addHost(HugePages, Warning, "hugepages_unmounted", fmt.Sprintf("%s of 1 GiB%s, but no hugetlbfs is mounted for them", count(pages, "page"), free),
			"mount -t hugetlbfs -o pagesize=1G,mode=0777 none /dev/hugepages-1G (dev-hugepages-1G.mount of tt-system-tools does)")
	default:
		e.addHost(HugePages, OK, "hugepages", fmt.Sprintf("%s of 1 GiB%s, at %s", count(pages, "page"), free, words.Escape(e.Setup.HugeMount)), "")
	}
}

// lowShm is how much of /dev/shm should be left: a region of tt-metal takes
// a few KiB, and programs put other things there.
const lowShm = 16 << 20

func (e *examiner) accounting() {
	if len(e.Snapshot.Devices) == 0 {
		return
	}
	n, known := e.Setup.Regions.Get()
	if !known {
		e.addHost(Accounting, Warning, "shm_unreadable", "it cannot be read: "+e.Setup.Regions.Status.String(), "mount a tmpfs on /dev/shm with mode 1777")
		return
	}
	if free, ok := e.Setup.ShmFree.Get(); ok && free < lowShm && e.Setup.ShmTotal.V > 0 {
		e.addHost(Accounting, Warning, "shm_full", fmt.Sprintf("only %s of %s are free: programs may fail to start, or account for nothing",
			words.Bytes(free), words.Bytes(e.Setup.ShmTotal.V)), "remove unused files; in a container, give it more (docker run --shm-size)")
	}
	left := e.repeat(Accounting, map[string]string{
		"stale":                      "ttmon mem --stale --remove",
		string(model.ShutOut):        "the owner of that region, or root, removes it: ttmon mem --stale --remove",
		string(model.LayoutMismatch): "end the programs that use it and remove the region: ttmon mem --stale --remove",
		string(model.LayoutUnknown):  "update ttmon: a newer one may know it",
		string(model.SlotsFull):      "ttmon mem --stale --remove",
		string(model.ShmUnreadable):  "run ttmon as root",
	})
	if !left {
		e.addHost(Accounting, OK, "regions", count(n, "region")+" of tt-metal's accounting, nothing stale in those that can be read", "")
	}
}

// sight says what ttmon itself cannot see from here.
func (e *examiner) sight() {
	limited := e.mounted()
	if c := e.Setup.Container; c != "" && !e.Snapshot.Simulated && e.Setup.Mount == nil {
		limited = true
		e.addHost(Visibility, Hint, "container", "running in a container ("+words.Escape(c)+"): processes and accounting regions of the host are not visible",
			"mount ttmond's socket /run/ttmon into it, or give ttmon the whole host to look at (--pid=host -v /:/host:ro,rslave, ttmon --root /host)")
	}
	if e.Daemon.Answers {
		if !limited {
			e.addHost(Visibility, OK, "daemon_sees", "ttmond reads the host for you: ttmon shows figures of all users", "")
		}
		return
	}
	hidden := e.repeat(Visibility, map[string]string{
		string(model.ProcessesHidden): "", string(model.ProcessesDenied): "", string(model.ProcessesGuarded): "",
		string(model.UsersHidden): "", string(model.ProcessDenied): "", string(model.RegionDenied): "", "hidden": "",
	})
	switch {
	case hidden:
	case !e.Root:
		how := "you are not root: figures of other users' programs are not visible"
		if e.Setup.HidePID {
			how = "you are not root, and /proc hides other users' processes (hidepid)"
		}
		e.addHost(Visibility, Hint, "not_root", how, "start ttmond, or run ttmon as root")
	case !limited:
		e.addHost(Visibility, OK, "sees_all", "can inspect all processes and their memory", "")
	}
}

func joined(list []string) string {
	safe := make([]string, len(list))
	for i, s := range list {
		safe[i] = words.Escape(s)
	}
	return strings.Join(safe, "; ")
}
