package sim_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// The words the synthetic chip had when the real driver printed the golden
// files.
var goldenWords = map[string]string{
	"6": "850", "7": "42", "8": "37", "9": "0x03B602BC", "11": "0x002D8000",
	"14": "500", "15": "900", "16": "540", "24": "0x0006E003", "26": "0x050B0000", "27": "0x81020000",
	"28": "0x120B0000", "29": "0x02230000", "32": "12345", "41": "3200", "55": "160", "56": "75",
	"58": "0x03020000", "60": "0", "61": "0xAABBCCDD", "62": "0x11223344", "64": "300",
}

var goldenCounters = map[string]string{
	"mst_rd_data_word_received": "131", "mst_nonposted_wr_data_word_sent": "136", "mst_posted_wr_data_word_sent": "137",
	"slv_rd_data_word_sent": "179", "slv_nonposted_wr_data_word_received": "184", "slv_posted_wr_data_word_received": "185",
}

// Directories as the real driver made them, besides what is in the golden
// files.
const (
	classWH = "dev device pcie_perf_counters power subsystem tt_aiclk tt_arc_fw_ver tt_arcclk tt_asic_id tt_axiclk tt_card_type " +
		"tt_eth_fw_ver tt_fw_bundle_ver tt_heartbeat tt_m3app_fw_ver tt_m3bl_fw_ver tt_serial tt_ttflash_ver uevent"
	classBH = "dev device pcie_perf_counters power subsystem tt_aiclk tt_arcclk tt_asic_id tt_axiclk tt_card_type " +
		"tt_fw_bundle_ver tt_heartbeat tt_m3app_fw_ver tt_serial tt_therm_trip_count uevent"
	hwmonWH = "curr1_input curr1_label curr1_max device in0_input in0_label in0_max name power power1_input power1_label power1_max " +
		"subsystem temp1_input temp1_label temp1_max uevent"
	hwmonBH = hwmonWH + " fan1_input fan1_label"
)

// TestGolden compares the simulated files with what the real driver printed,
// byte for byte, with names, modes and sizes.
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		board, golden string
		serial        [2]string
		class, hwmon  string
	}{
		{"n150", "kmd-golden-wh.tsv", [2]string{"0x01000186", "0x11905001"}, classWH, hwmonWH},
		{"p150a", "kmd-golden-bh.tsv", [2]string{"0x00000402", "0x11905001"}, classBH, hwmonBH},
	} {
		t.Run(tt.board, func(t *testing.T) {
			t.Parallel()
			h := start(t, sim.Options{Boards: tt.board, Driver: "2.10.1-pre", Frozen: true})
			for tag, value := range goldenWords {
				ctl(t, h, "word", "0", tag, value)
			}
			ctl(t, h, "word", "0", "1", tt.serial[0])
			ctl(t, h, "word", "0", "2", tt.serial[1])
			for file, value := range goldenCounters {
				ctl(t, h, "counters", "0", file+"0", value)
				ctl(t, h, "counters", "0", file+"1", value)
			}
			mon := hwmon(t, h, "0")
			checkGolden(t, h, "testdata/"+tt.golden, strings.NewReplacer("/sys/class/hwmon/hwmon0", "/sys/class/hwmon/"+mon[strings.LastIndex(mon, "/")+1:]))
			checkNames(t, h, class("0", ""), tt.class)
			checkNames(t, h, mon, tt.hwmon)
			if got, want := mustRead(t, h, class("0", "uevent")), "MINOR=0\nDEVNAME=tenstorrent/0\n"; !strings.HasSuffix(got, want) {
				t.Errorf("uevent is %q, want it to end in %q", got, want)
			}
		})
	}
}

func checkGolden(t *testing.T, h *sim.Host, golden string, place *strings.Replacer) {
	t.Helper()
	f, err := os.Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		cols := strings.Split(lines.Text(), "\t")
		path := place.Replace(cols[0])
		st, err := os.Stat(h.Root() + path)
		if err != nil {
			t.Error(err)
			continue
		}
		sys := st.Sys().(*syscall.Stat_t)
		text := strings.ReplaceAll(mustRead(t, h, path), "\n", `\n`)
		got := []string{cols[0], fmt.Sprintf("%o", st.Mode().Perm()), fmt.Sprint(st.Size()), text}
		if diff := cmp.Diff(cols, got); diff != "" {
			t.Errorf("%s (-driver +simulated):\n%s", path, diff)
		}
		if sys.Uid != 0 || sys.Gid != 0 {
			t.Errorf("%s belongs to %d:%d, want 0:0", path, sys.Uid, sys.Gid)
		}
		n++
	}
	if n < 20 {
		t.Errorf("only %d lines in %s", n, golden)
	}
}

func checkNames(t *testing.T, h *sim.Host, dir, want string) {
	t.Helper()
	entries, err := os.ReadDir(h.Root() + dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	names := strings.Fields(want)
	slices.Sort(names)
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("%s (-driver +simulated):\n%s", dir, diff)
	}
}
