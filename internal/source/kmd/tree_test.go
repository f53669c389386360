package kmd

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// tree is a host of plain files, as the driver would show it.
type tree struct {
	t   *testing.T
	dir string
}

func newTree(t *testing.T) *tree {
	tr := &tree{t, t.TempDir()}
	tr.write("/sys/module/tenstorrent/version", "2.10.0")
	return tr
}

func (tr *tree) root() hostfs.Root { return hostfs.At(tr.dir) }

// write makes a file of one line, and the directories it needs.
func (tr *tree) write(path, text string) {
	tr.t.Helper()
	path = tr.dir + path
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) remove(path string) {
	tr.t.Helper()
	if err := os.RemoveAll(tr.dir + path); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) link(target, path string) {
	tr.t.Helper()
	if err := os.MkdirAll(filepath.Dir(tr.dir+path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.Symlink(target, tr.dir+path); err != nil {
		tr.t.Fatal(err)
	}
}

// card is where a device's files are.
type card struct {
	*tree
	pci, class, hwmon string
}

// add plugs in a board with the files of a golden listing: what the real
// driver printed for a synthetic chip.
func (tr *tree) add(golden string, index, hwmon int, bdf string) *card {
	tr.t.Helper()
	pci := "/sys/devices/pci0000:40/" + bdf
	b := &card{
		tree: tr, pci: pci,
		class: pci + "/tenstorrent/tenstorrent!" + strconv.Itoa(index),
		hwmon: pci + "/hwmon/hwmon" + strconv.Itoa(hwmon),
	}
	device := "0x401e"
	if golden == "bh" {
		device = "0xb140"
	}
	for file, text := range map[string]string{
		"vendor": "0x1e52", "device": device, "subsystem_vendor": "0x1e52", "subsystem_device": "0x0018",
		"revision": "0x01", "numa_node": "0", "local_cpulist": "0-15",
		"current_link_speed": "16.0 GT/s PCIe", "current_link_width": "16",
		"max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16",
	} {
		tr.write(pci+"/"+file, text)
	}
	tr.link("../../devices/pci0000:40/"+bdf+"/tenstorrent/tenstorrent!"+strconv.Itoa(index),
		"/sys/class/tenstorrent/tenstorrent!"+strconv.Itoa(index))
	for path, text := range goldenFiles(tr.t, golden) {
		path = strings.Replace(path, "/sys/class/tenstorrent/tenstorrent!0", b.class, 1)
		path = strings.Replace(path, "/sys/class/hwmon/hwmon0", b.hwmon, 1)
		path = strings.Replace(path, "/proc/driver/tenstorrent/0/", "/proc/driver/tenstorrent/"+strconv.Itoa(index)+"/", 1)
		if !strings.HasPrefix(path, "/sys/module/") {
			tr.write(path, text)
		}
	}
	for _, c := range counterFiles {
		if golden == "bh" { // the listing has but one of them
			tr.write(b.class+"/"+counterDir+"/"+c.file, "131")
		}
	}
	return b
}

func goldenFiles(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open("testdata/kmd-golden-" + name + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if c := strings.Split(s.Text(), "\t"); len(c) == 4 {
			files[c[0]] = strings.TrimSuffix(c[3], `\n`)
		}
	}
	return files
}
