package proc

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

const (
	maxJobName = 200
	maxDir     = 512
)

// readReach returns how to reach the user who runs a process.
func (r *Reader) readReach(p *Process) model.Reach {
	out := model.Reach{TTY: ttyName(p.stat.TTY), SSH: p.environJob.ssh, Dir: p.workDir}
	if p.UID >= 0 {
		out.FullName = r.users.fullName(p.UID)
	}
	if p.placement.slurmJob != "" || p.environJob.job != "" {
		out.JobName = p.environJob.name
	}
	return out
}

// readWorkDir is the working directory of a process; empty where it may not be
// read.
func (r *Reader) readWorkDir(p *Process) string {
	buf := make([]byte, maxDir)
	n, err := p.dir.Readlink("cwd", buf)
	if err != nil || n <= 0 || n >= len(buf) {
		return ""
	}
	return string(buf[:n])
}

// sshFrom is the address that a session came from: the first word of
// SSH_CONNECTION. The user may have changed it, so that it must be an address.
func sshFrom(connection string) string {
	first, _, _ := strings.Cut(connection, " ")
	if a, err := netip.ParseAddr(first); err == nil && len(first) < 64 {
		return a.WithZone("").String()
	}
	return ""
}

// ttyName is the name of a terminal by its device number, as the kernel packs it
// into stat.
func ttyName(number uint64) string {
	major, minor := number>>8&0xfff, number&0xff|number>>12&0xfff00
	switch {
	case number == 0:
		return ""
	case major >= 136 && major <= 143:
		return "pts/" + strconv.FormatUint(minor+(major-136)<<8, 10)
	case major == 4 && minor < 64:
		return "tty" + strconv.FormatUint(minor, 10)
	case major == 4:
		return "ttyS" + strconv.FormatUint(minor-64, 10)
	}
	return ""
}
