// Package setup reads how a host is prepared for boards: device nodes, the
// IOMMU, huge pages, /dev/shm, and what the kernel allows.
//
// It is a poll source for ttmon doctor, which asks it once. It reads files of
// the kernel that answer from memory, looks at device nodes without opening
// them, and touches no chip.
package setup

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

const (
	nodes     = "/dev/tenstorrent"
	functions = "/sys/bus/pci/devices"
	huge      = "/sys/kernel/mm/hugepages/hugepages-1048576kB"
	shm       = "/dev/shm"
	vendor    = "0x1e52"
)

// Read looks at the host below root. What cannot be read is missing with its
// reason.
func Read(root hostfs.Root) *model.Setup {
	s := &model.Setup{
		Nodes:     readNodes(root),
		Functions: readFunctions(root),
		HugePages: number(root, huge+"/nr_hugepages"),
		HugeFree:  number(root, huge+"/free_hugepages"),
		BTF:       root.Exists("/sys/kernel/btf/vmlinux"),
		Lockdown:  lockdown(text(root, "/sys/kernel/security/lockdown")),
		Kernel:    text(root, "/proc/sys/kernel/osrelease"),
	}
	mounts, _ := root.Read("/proc/self/mounts", 256<<10)
	s.HugeMount, s.HidePID = readMounts(string(mounts))
	s.Container = container(root)
	s.Parameters = parameters(root)
	readShm(root, s)
	if isMount(root) {
		s.Mount = readMount(root)
	}
	return s
}

// text is the line in a small file, or nothing.
func text(root hostfs.Root, path string) string {
	s, err := root.ReadString(path)
	if err != nil {
		return ""
	}
	return s
}

func number(root hostfs.Root, path string) model.Reading[int] {
	s, err := root.ReadString(path)
	if err != nil {
		return model.Missing[int](hostfs.Status(err), "")
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return model.Missing[int](model.Implausible, "")
	}
	return model.Value(n)
}

// readNodes looks at the device nodes. Links, such as by-id, are left out.
func readNodes(root hostfs.Root) (list []model.Node) {
	names, _ := root.Names(nodes) // without the directory there are none
	for _, name := range names {
		index, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		n := model.Node{Index: index, Path: path.Join(nodes, name)}
		st, err := root.Stat(n.Path)
		if err != nil {
			continue
		}
		n.Mode, n.UID, n.Usable = st.Mode&0o777, int(st.Uid), root.MayUse(n.Path)
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b model.Node) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

func readFunctions(root hostfs.Root) (list []model.Function) {
	names, _ := root.Names(functions)
	for _, bdf := range names {
		dir := path.Join(functions, bdf)
		if text(root, dir+"/vendor") != vendor {
			continue
		}
		list = append(list, model.Function{
			BusID:          bdf,
			IOMMU:          iommu(root, dir),
			FatalErrors:    errorsCounted(root, dir+"/aer_dev_fatal", "TOTAL_ERR_FATAL"),
			NonfatalErrors: errorsCounted(root, dir+"/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
		})
	}
	return list
}

// iommu tells what is between a function and memory. A function without a
// group has no IOMMU before it.
func iommu(root hostfs.Root, dir string) model.Reading[model.IOMMU] {
	if !root.Exists(dir + "/iommu_group") {
		return model.Value(model.NoIOMMU)
	}
	kind, err := root.ReadString(dir + "/iommu_group/type")
	switch {
	case err != nil:
		return model.Missing[model.IOMMU](hostfs.Status(err), "")
	case kind == "DMA" || kind == "DMA-FQ":
		return model.Value(model.Translated)
	case kind == "identity":
		return model.Value(model.PassThrough)
	}
	return model.Missing[model.IOMMU](model.Unsupported, "")
}

// errorsCounted is the last line of an error statistics file: "TOTAL_ERR_FATAL 0".
func errorsCounted(root hostfs.Root, path, total string) model.Reading[uint64] {
	b, err := root.Read(path, 4<<10)
	if err != nil {
		return model.Missing[uint64](hostfs.Status(err), "")
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); name == total && err == nil {
			return model.Value(n)
		}
	}
	return model.Missing[uint64](model.Unsupported, "")
}

// lockdown finds the mode that holds in "none [integrity] confidentiality".
func lockdown(s string) string {
	_, rest, ok := strings.Cut(s, "[")
	mode, _, closed := strings.Cut(rest, "]")
	if !ok || !closed {
		return ""
	}
	return mode
}

// readMounts finds where pages of 1 GiB are mounted, and whether /proc hides
// processes.
func readMounts(mounts string) (hugeAt string, hidePID bool) {
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		options := strings.Split(f[3], ",")
		switch {
		case f[2] == "hugetlbfs" && hugeAt == "" && (slices.Contains(options, "pagesize=1024M") || slices.Contains(options, "pagesize=1G")):
			hugeAt = f[1]
		case f[2] == "proc" && f[1] == "/proc":
			for _, o := range options {
				how, is := strings.CutPrefix(o, "hidepid=")
				hidePID = hidePID || is && how != "0" && how != "off"
			}
		}
	}
	return hugeAt, hidePID
}

// firstPIDs is the inode of the pid namespace that the kernel starts with.
const firstPIDs = "pid:[4026531836]"

// container names the sign by which this seems to be a container: a file that
// runtimes put there, or a pid namespace. It is empty if there is none.
func container(root hostfs.Root) string {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv", "/run/systemd/container"} {
		if root.Exists(mark) {
			return mark
		}
	}
	if ns, err := root.Readlink("/proc/self/ns/pid"); err == nil && ns != firstPIDs {
		return "a pid namespace of its own"
	}
	return ""
}

func parameters(root hostfs.Root) (list []model.Parameter) {
	const dir = "/sys/module/tenstorrent/parameters"
	names, _ := root.Names(dir)
	for _, name := range names {
		if v, err := root.ReadString(path.Join(dir, name)); err == nil {
			list = append(list, model.Parameter{Name: name, Value: v})
		}
	}
	return list
}

func readShm(root hostfs.Root, s *model.Setup) {
	names, err := root.Names(shm)
	if err != nil {
		status := hostfs.Status(err)
		s.Regions = model.Missing[int](status, "")
		s.ShmFree, s.ShmTotal = model.Missing[uint64](status, ""), model.Missing[uint64](status, "")
		return
	}
	n := 0
	for _, name := range names {
		if strings.HasPrefix(name, "tt_device_") && strings.HasSuffix(name, "_memory") {
			n++
		}
	}
	s.Regions = model.Value(n)
	var st unix.Statfs_t
	if err := unix.Statfs(root.Path(shm), &st); err == nil {
		s.ShmFree = model.Value(st.Bavail * uint64(st.Bsize))
		s.ShmTotal = model.Value(st.Blocks * uint64(st.Bsize))
	}
}
