package main

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/view/text"
)

// hostInfo is what the official tool's snapshot says about the machine.
func (a *app) hostInfo() text.HostInfo {
	var h text.HostInfo
	root, err := a.where.Files()
	if err != nil {
		return h
	}
	if b, err := root.Read("/etc/os-release", 16<<10); err == nil {
		h.Distro = prettyName(string(b))
	}
	if b, err := root.Read("/proc/meminfo", 4<<10); err == nil {
		h.Memory = memoryTotal(string(b))
	}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		h.Machine = unix.ByteSliceToString(uts.Machine[:])
	}
	return h
}

// prettyName finds the name of the distribution in an os-release file.
func prettyName(s string) string {
	for line := range strings.Lines(s) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

// memoryTotal is "503.50 GB", which the official tool says of GiB.
func memoryTotal(s string) string {
	for line := range strings.Lines(s) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		if kib, err := strconv.ParseUint(fields[1], 10, 64); err == nil {
			return fmt.Sprintf("%.2f GB", float64(kib)/(1<<20))
		}
	}
	return ""
}
