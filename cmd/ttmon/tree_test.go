package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tree is a host of plain files, for --root.
type tree string

// write makes a file of one line.
func (t tree) write(path, text string) error {
	path = string(t) + path
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text+"\n"), 0o644)
}

func (t tree) link(target, path string) error {
	if err := os.MkdirAll(filepath.Dir(string(t)+path), 0o755); err != nil {
		return err
	}
	return os.Symlink(target, string(t)+path)
}

// plug puts a board into the host. over replaces or, with "", removes files:
// those of the class directory by name, those of hwmon as "hwmon/name".
func (t tree) plug(index int, bdf, card string, over map[string]string) error {
	wormhole := card[0] == 'n'
	pci := "/sys/devices/pci0000:00/" + bdf
	class := pci + "/tenstorrent/tenstorrent!" + strconv.Itoa(index)
	files := map[string]string{
		"tt_aiclk": "800", "tt_axiclk": "960", "tt_arcclk": "800", "tt_card_type": card,
		"tt_serial": fmt.Sprintf("00000402119000%02X", index), "tt_asic_id": fmt.Sprintf("AABBCCDD112233%02X", index),
		"tt_fw_bundle_ver": "19.4.0.0", "tt_m3app_fw_ver": "0.23.0.0", "tt_heartbeat": "62090",
		"hwmon/name": "blackhole", "hwmon/temp1_input": "38500", "hwmon/temp1_max": "90000", "hwmon/power1_input": "16000000",
		"hwmon/power1_max": "150000000", "hwmon/in0_input": "719", "hwmon/in0_max": "900", "hwmon/curr1_input": "22000", "hwmon/curr1_max": "200000",
	}
	id, speed := "0xb140", "32.0 GT/s PCIe"
	if wormhole {
		id, speed = "0x401e", "16.0 GT/s PCIe"
		files["hwmon/name"] = "wormhole"
	} else {
		files["tt_therm_trip_count"], files["hwmon/fan1_input"] = "0", "1305"
	}
	maps.Copy(files, counters())
	for name, text := range over {
		files[name] = text
	}
	device := map[string]string{
		"vendor": "0x1e52", "device": id, "subsystem_vendor": "0x1e52", "subsystem_device": "0x0040", "revision": "0x00", "numa_node": "0",
		"local_cpulist": "0-1", "current_link_speed": speed, "max_link_speed": speed, "current_link_width": "16", "max_link_width": "16",
	}
	for name, text := range files {
		path := class + "/" + name
		if rest, ok := strings.CutPrefix(name, "hwmon/"); ok {
			path = fmt.Sprintf("%s/hwmon/hwmon%d/%s", pci, index, rest)
		}
		if text == "" {
			continue
		}
		if err := t.write(path, text); err != nil {
			return err
		}
	}
	for name, text := range device {
		if err := t.write(pci+"/"+name, text); err != nil {
			return err
		}
	}
	if err := t.write(fmt.Sprintf("/proc/driver/tenstorrent/%d/pids", index), ""); err != nil {
		return err
	}
	for _, l := range [][2]string{
		{"../../devices/pci0000:00/" + bdf + "/tenstorrent/tenstorrent!" + strconv.Itoa(index), "/sys/class/tenstorrent/tenstorrent!" + strconv.Itoa(index)},
		{"../../devices/pci0000:00/" + bdf + "/hwmon/hwmon" + strconv.Itoa(index), "/sys/class/hwmon/hwmon" + strconv.Itoa(index)},
		{"../../../devices/pci0000:00/" + bdf, "/sys/bus/pci/devices/" + bdf},
		{"../../../" + bdf, class + "/device"},
		{"../../../" + bdf, fmt.Sprintf("%s/hwmon/hwmon%d/device", pci, index)},
	} {
		if err := t.link(l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}

// counters are the PCIe counters of an idle device.
func counters() map[string]string {
	files := map[string]string{}
	for _, kind := range []string{
		"mst_rd_data_word_received", "mst_nonposted_wr_data_word_sent", "mst_posted_wr_data_word_sent",
		"slv_nonposted_wr_data_word_received", "slv_posted_wr_data_word_received", "slv_rd_data_word_sent",
	} {
		files["pcie_perf_counters/"+kind+"0"], files["pcie_perf_counters/"+kind+"1"] = "100", "0"
	}
	return files
}

// hosts makes the hosts that scripts talk about, one directory each.
func hosts(dir string) error {
	at := func(name string) tree { return tree(filepath.Join(dir, name)) }
	loaded := func(name string) (tree, error) {
		t := at(name)
		return t, t.write("/sys/module/tenstorrent/version", "2.10.1")
	}
	if err := os.MkdirAll(string(at("nodriver"))+"/sys", 0o755); err != nil {
		return err
	}
	if _, err := loaded("none"); err != nil {
		return err
	}
	one, err := loaded("one")
	if err != nil {
		return err
	}
	if err := one.plug(0, "0000:41:00.0", "p150a", nil); err != nil {
		return err
	}
	four, err := loaded("four")
	if err != nil {
		return err
	}
	for i, b := range []struct{ bdf, card string }{
		{"0000:01:00.0", "n300"}, {"0000:41:00.0", "p150a"}, {"0000:42:00.0", "p150a"}, {"0000:81:00.0", "n150"},
	} {
		if err := four.plug(i, b.bdf, b.card, nil); err != nil {
			return err
		}
	}
	hung, err := loaded("hung")
	if err != nil {
		return err
	}
	if err := hung.plug(0, "0000:41:00.0", "p150a", nil); err != nil {
		return err
	}
	ones := map[string]string{ // a chip that fell off the bus reads as all ones
		"tt_aiclk": "4294967295", "tt_axiclk": "4294967295", "tt_arcclk": "4294967295", "tt_heartbeat": "4294967295", "tt_therm_trip_count": "4294967295",
		"tt_serial": "FFFFFFFFFFFFFFFF", "tt_asic_id": "FFFFFFFFFFFFFFFF", "tt_fw_bundle_ver": "255.255.255.255", "tt_card_type": "unknown",
		"hwmon/temp1_input": "65535999", "hwmon/power1_input": "4293967296", "hwmon/curr1_input": "4294966296", "hwmon/in0_input": "4294967295",
		"hwmon/temp1_max": "4294966296", "hwmon/power1_max": "4293967296", "hwmon/curr1_max": "4294966296", "hwmon/in0_max": "65535", "hwmon/fan1_input": "4294967295",
	}
	for name := range counters() {
		ones[name] = "4294967295"
	}
	return hung.plug(1, "0000:42:00.0", "p150a", ones)
}
