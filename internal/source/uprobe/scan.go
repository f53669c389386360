package uprobe

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// scan lists the libraries that running processes have mapped. Processes that
// may not be looked at are left out.
func scan() (found []mapping) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if m, ok := mapped(pid); ok {
			found = append(found, m)
		}
	}
	return found
}

// mapped finds the library in the mappings of a process.
func mapped(pid int) (m mapping, ok bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return m, false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if m, ok := parseMapping(lines.Text()); ok {
			m.pid = pid
			return m, true
		}
	}
	return m, false
}

// parseMapping reads a line of maps if it is code of the library: range,
// rights, offset, device, inode, path.
func parseMapping(line string) (m mapping, ok bool) {
	var field [5]string
	for i := range field {
		field[i], line, _ = strings.Cut(strings.TrimLeft(line, " "), " ")
	}
	m.path = strings.TrimLeft(line, " ")
	if !strings.Contains(field[1], "x") || !isLibrary(m.path) {
		return m, false
	}
	from, to, _ := strings.Cut(field[0], "-")
	var errs [4]error
	m.start, errs[0] = strconv.ParseUint(from, 16, 64)
	m.end, errs[1] = strconv.ParseUint(to, 16, 64)
	m.offset, errs[2] = strconv.ParseUint(field[2], 16, 64)
	m.inode, errs[3] = strconv.ParseUint(field[4], 10, 64)
	for _, err := range errs {
		if err != nil {
			return m, false
		}
	}
	return m, true
}

// hasChip says whether a process has a device or its accounting open: if not,
// it has no allocator of a chip.
func hasChip(pid int) bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil || strings.Contains(string(maps), "/dev/shm/tt_device_") {
		return true
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true
	}
	for _, e := range entries {
		if to, err := os.Readlink(dir + "/" + e.Name()); err == nil && strings.HasPrefix(to, "/dev/tenstorrent/") {
			return true
		}
	}
	return false
}
