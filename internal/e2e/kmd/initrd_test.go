package kmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ttmon/ttmon/internal/chipread"
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
	for name, from := range map[string]string{
		"bin/busybox": shell, "tenstorrent.ko": module, "bin/ttmon": filepath.Join(bin, "ttmon"), "bin/ttmond": filepath.Join(bin, "ttmond"),
	} {
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		a.add(name, 0o100755, b)
	}
	a.add("init", 0o100755, []byte(script))
	for _, way := range []model.TelemetryWay{model.ByResource, model.ByNode} {
		r := chipread.Request{Arch: arch, Way: way, Path: "/dev/tenstorrent/0", BusID: "BUSID", First: true}
		if way == model.ByResource {
			r.Path = "/sys/class/tenstorrent/tenstorrent!0/device/resource4"
		}
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		a.add("request-"+string(way), 0o100644, b)
	}
	a.add("arch", 0o100644, []byte(arch))
	a.add("TRAILER!!!", 0, nil)
	return os.WriteFile(path, a.Bytes(), 0o644)
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

// script is what the guest does.
const script = `#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm
arch=$(cat /arch)
class='/sys/class/tenstorrent/tenstorrent!0'
section() { echo "@@begin $1"; shift; "$@" 2>/dev/null; echo; echo "@@end"; }
users() {
  section pids-$1 cat /proc/driver/tenstorrent/0/pids
  section refcnt-$1 cat /sys/module/tenstorrent/refcnt
}
insmod /tenstorrent.ko
i=0; while [ ! -e "$class/tt_aiclk" ] && [ $i -lt 120 ]; do sleep 1; i=$((i+1)); done
section version cat /sys/module/tenstorrent/version
bus=$(basename $(readlink -f "$class/device"))
for way in resource4 node; do sed "s/BUSID/$bus/" /request-$way >/tmp/request-$way; done
users before

daemon() { ttmond --listen off --no-uprobe "$@" >/tmp/log 2>&1 & pid=$!; }
stop() { kill $pid; wait $pid 2>/dev/null; }

echo "@@phase off"
daemon; sleep 20
section smi-off ttmon smi --json
stop
echo "@@phase off-after"
users off

if [ $arch = wormhole ]; then
  echo "@@phase resource4"
  section words-resource4 sh -c 'ttmond --read-one-chip </tmp/request-resource4'
  echo "@@phase resource4-after"
fi
echo "@@phase node"
section words-node sh -c 'ttmond --read-one-chip </tmp/request-node'
echo "@@phase node-after"
users node

echo "@@phase table"
daemon --firmware full; sleep 30
section smi-table ttmon smi --json
section daemon-log cat /tmp/log
stop
echo "@@phase table-after"
users table

if [ $arch = wormhole ]; then
  echo "@@phase power"
  sh -c 'exec 3</dev/tenstorrent/0; sleep 1'
  i=0; while [ $i -lt 9 ]; do ttmond --read-one-chip </tmp/request-resource4 >/dev/null; sleep 1; i=$((i+1)); done
  echo "@@phase power-after"
fi

echo "@@phase dead"
sleep 2
section dead sh -c 'ttmond --read-one-chip </tmp/request-node'
echo "@@phase end"
sleep 1
poweroff -f
`
