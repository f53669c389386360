package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ttmon/ttmon/internal/source/chipread"
	"github.com/ttmon/ttmon/internal/model"
)

// initrd writes the guest's files: a shell, the module, the programs, and what to
// do.
func initrd(path, module string, arch model.Arch) error {
	var a archive
	for _, dir := range []string{"bin", "proc", "sys", "dev", "tmp", "run", "etc", "root"} {
		a.add(dir, 0o040755, nil)
	}
	shell, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("busybox is not installed (Debian: busybox-static): %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin := os.Getenv(binVar)
	for name, from := range map[string]string{
		"bin/busybox": shell, "bin/" + guestProgram: self, "tenstorrent.ko": module, "bin/ttmon": filepath.Join(bin, "ttmon"), "bin/ttmond": filepath.Join(bin, "ttmond"),
	} {
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		a.add(name, 0o100755, b)
	}
	a.add("init", 0o100755, []byte(script))
	for name, r := range requests(arch) {
		b, err := json.Marshal([]chipread.Request{r})
		if err != nil {
			return err
		}
		a.add("request-"+name, 0o100644, b)
	}
	a.add("arch", 0o100644, []byte(arch))
	a.add("etc/ttmon", 0o040755, nil)
	// An emulated processor on a busy host is slow, and a late reader is one that stalls.
	a.add("etc/ttmon/ttmond.toml", 0o100644, []byte("[collect]\ntimeout = \"1m\"\n"))
	a.add("TRAILER!!!", 0, nil)
	return os.WriteFile(path, a.Bytes(), 0o644)
}

// requests are what the guest has single readers read.
func requests(arch model.Arch) map[string]chipread.Request {
	by := func(way model.TelemetryWay) chipread.Request {
		r := chipread.Request{Arch: arch, Way: way, Path: node, BusID: "BUSID", First: true}
		if way == model.ByResource {
			r.Path = "/sys/class/tenstorrent/tenstorrent!0/device/resource4"
		}
		return r
	}
	full := by(model.ByNode)
	if arch == model.Wormhole {
		full = by(model.ByResource)
		full.Node = node
	}
	full.Dispatch, full.Ethernet = true, []int{0, 1}
	return map[string]chipread.Request{string(model.ByResource): by(model.ByResource), string(model.ByNode): by(model.ByNode), "full": full}
}

// archive is a cpio archive as the kernel unpacks it.
type archive struct {
	bytes.Buffer
	inode int
}

func (a *archive) add(name string, mode int, data []byte) {
	a.inode++
	fmt.Fprintf(a, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	a.WriteString(name + "\x00")
	a.pad()
	a.Write(data)
	a.pad()
}

func (a *archive) pad() {
	for a.Len()%4 != 0 {
		a.WriteByte(0)
	}
}

// script is what the guest does. Sections are what the test reads, phases what it
// breaks the chip by and counts messages between.
const script = `#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root TTMON_TIMEOUT=20s
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm
mount -t tracefs tracefs /sys/kernel/tracing
arch=$(cat /arch)
class='/sys/class/tenstorrent/tenstorrent!0'
section() { echo "@@begin $1"; shift; "$@" 2>/dev/null; echo; echo "@@end"; }
phase() { echo "@@phase $1"; sleep 0.2; }
users() {
  section pids-$1 cat /proc/driver/tenstorrent/0/pids
  section refcnt-$1 cat /sys/module/tenstorrent/refcnt
}
# The kernel counts who opens the node, maps a PCI file, or reads the configuration space.
opens() { section opens-$1 cat /sys/kernel/tracing/kprobe_profile; }
read_chip() { ttmond --read-chips </tmp/request-$1 2>>/tmp/errors || echo "exit code $?" >>/tmp/errors; }

insmod /tenstorrent.ko
i=0; while [ ! -e "$class/tt_aiclk" ] && [ $i -lt 120 ]; do sleep 1; i=$((i+1)); done
section version cat /sys/module/tenstorrent/version
version=$(cat /sys/module/tenstorrent/version)
section heartbeat cat $class/tt_heartbeat
for probe in node_open:tt_cdev_open bar_map:pci_mmap_resource_uc bar_map_wc:pci_mmap_resource_wc config_read:pci_read_config; do
  echo "p:ttmon/${probe%%:*} ${probe##*:}" >>/sys/kernel/tracing/kprobe_events
done
echo 1 >/sys/kernel/tracing/events/ttmon/enable
bus=$(basename $(readlink -f "$class/device"))
for r in resource4 node full; do sed "s/BUSID/$bus/" /request-$r >/tmp/request-$r; done
users before

daemon() { ttmond --no-uprobe "$@" >/tmp/log 2>&1 & pid=$!; }
stop() { kill $pid; wait $pid 2>/dev/null; }

phase off
opens off
daemon
section smi-off guest wait served
ttmon smi -q >/dev/null; ttmon doctor >/dev/null; ttmon topo >/dev/null; ttmon smi --direct >/dev/null
sleep 5
opens off-after
stop
phase off-after
users off

if [ $arch = wormhole ]; then
  phase resource4
  opens resource4
  section words-resource4 read_chip resource4
  opens resource4-after
  phase resource4-after
fi
phase node
section words-node read_chip node
phase node-after
users node
phase full
section words-full read_chip full
phase full-after

hold() { rm -f /tmp/held /tmp/go; mkfifo /tmp/go; guest hold "$@" </tmp/go & holder=$!; exec 4>/tmp/go; i=0; while [ ! -e /tmp/held ] && [ $i -lt 30 ]; do sleep 1; i=$((i+1)); done; }
release() { exec 4>&-; wait $holder; }
hold exclusive
section exclusive read_chip node
release
size=1048576; [ $arch = wormhole ] || size=2097152
hold windows $size
section windows read_chip node
release
users held

phase table
opens table
daemon --firmware full
want=read; [ $arch-$version = blackhole-2.6.0 ] && want=refused
section smi-table guest wait $want
sleep 11
phase table-after
opens table-after
users table

if [ -e $class/tt_heartbeat ]; then
  phase frozen
  section smi-frozen guest wait hung
  sleep 6 # a reader that was under way
  opens frozen
  sleep 12
  opens frozen-after
  phase thawed
  section smi-thawed guest wait $want
fi

phase reset
kinds="3 6"; case $version in 1.*) kinds="2 0";; esac
section reset guest reset $kinds
section smi-reset guest wait $want
phase reset-after

phase removed
# Drivers before 2.7 crash the kernel when a hwmon file is read while the chip is removed.
case $version in 1.*|2.[0-6].*) stop; restart=yes;; esac
echo 1 >/sys/bus/pci/devices/$bus/remove
section smi-removed guest wait gone
echo 1 >/sys/bus/pci/rescan
[ -z "$restart" ] || daemon --firmware full
section smi-back guest wait $want
users back

if [ $arch = wormhole ]; then
  phase power
  sh -c 'exec 3</dev/tenstorrent/0; sleep 1'
  i=0; while [ $i -lt 9 ]; do read_chip resource4 >/dev/null; sleep 1; i=$((i+1)); done
  phase power-after
fi

phase dead
section smi-dead guest wait hung
section dead read_chip node
phase alive
section smi-alive guest wait $want
section daemon-log cat /tmp/log
stop
users end
section reader-errors cat /tmp/errors
section kernel-log sh -c 'dmesg | grep "Oops\| BUG:\|general protection\|WARNING:"'
phase end
poweroff -f
`
