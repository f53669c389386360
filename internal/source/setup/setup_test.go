package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func plant(t *testing.T, files map[string]string) hostfs.Root {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return hostfs.At(dir)
}

func TestRead(t *testing.T) {
	const bus = "/sys/bus/pci/devices/"
	root := plant(t, map[string]string{
		bus + "0000:00:02.0/vendor":                      "0x8086\n",
		bus + "0000:01:00.0/vendor":                      "0x1e52\n",
		bus + "0000:01:00.0/iommu_group/type":            "DMA-FQ\n",
		bus + "0000:01:00.0/aer_dev_fatal":               "DLP 2\nTOTAL_ERR_FATAL 2\n",
		bus + "0000:01:00.0/aer_dev_nonfatal":            "no number\n",
		bus + "0000:02:00.0/vendor":                      "0x1e52\n",
		bus + "0000:03:00.0/vendor":                      "0x1e52\n",
		bus + "0000:03:00.0/iommu_group/type":            "identity\n",
		bus + "0000:04:00.0/vendor":                      "0x1e52\n",
		bus + "0000:04:00.0/iommu_group/type":            "blocked\n",
		huge + "/nr_hugepages":                           "4\n",
		huge + "/free_hugepages":                         "x\n",
		"/dev/tenstorrent/10":                            "",
		"/dev/tenstorrent/2":                             "",
		"/dev/tenstorrent/by-id":                         "",
		"/dev/shm/tt_device_1_memory":                    "",
		"/dev/shm/other":                                 "",
		"/sys/kernel/security/lockdown":                  "none [integrity] confidentiality\n",
		"/sys/kernel/btf/vmlinux":                        "",
		"/proc/sys/kernel/osrelease":                     "6.12.1\n",
		"/proc/self/mounts":                              "proc /proc proc rw,hidepid=invisible 0 0\nnone /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\nnone /dev/hugepages-1G hugetlbfs rw,pagesize=1024M 0 0\n",
		"/run/.containerenv":                             "",
		"/sys/module/tenstorrent/parameters/max_devices": "32\n",
	})
	got := Read(root)
	if !got.ShmFree.Known() || !got.ShmTotal.Known() {
		t.Error("how much of /dev/shm is left is not known")
	}
	got.ShmFree, got.ShmTotal = model.Reading[uint64]{}, model.Reading[uint64]{}
	none := model.Missing[uint64](model.Absent, "")
	want := &model.Setup{
		Nodes: []model.Node{
			{Index: 2, Path: "/dev/tenstorrent/2", Mode: 0o644, UID: os.Geteuid(), Usable: true},
			{Index: 10, Path: "/dev/tenstorrent/10", Mode: 0o644, UID: os.Geteuid(), Usable: true},
		},
		Functions: []model.Function{
			{BusID: "0000:01:00.0", IOMMU: model.Value(model.Translated), FatalErrors: model.Value[uint64](2), NonfatalErrors: model.Missing[uint64](model.Unsupported, "")},
			{BusID: "0000:02:00.0", IOMMU: model.Value(model.NoIOMMU), FatalErrors: none, NonfatalErrors: none},
			{BusID: "0000:03:00.0", IOMMU: model.Value(model.PassThrough), FatalErrors: none, NonfatalErrors: none},
			{BusID: "0000:04:00.0", IOMMU: model.Missing[model.IOMMU](model.Unsupported, ""), FatalErrors: none, NonfatalErrors: none},
		},
		HugePages: model.Value(4), HugeFree: model.Missing[int](model.Implausible, ""), HugeMount: "/dev/hugepages-1G",
		Regions: model.Value(1), Kernel: "6.12.1", BTF: true, Lockdown: "integrity", Container: "/run/.containerenv", HidePID: true,
		Parameters: []model.Parameter{{Name: "max_devices", Value: "32"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNothing: a host that shows nothing has nothing, with the reason.
func TestNothing(t *testing.T) {
	got := Read(plant(t, nil))
	absent := model.Missing[int](model.Absent, "")
	want := &model.Setup{HugePages: absent, HugeFree: absent, Regions: absent, ShmFree: model.Missing[uint64](model.Absent, ""), ShmTotal: model.Missing[uint64](model.Absent, "")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBroker(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"":                          {"/run/other": ""},
		"/run/tt-device-broker":     {"/run/tt-device-broker/broker.sock": ""},
		"/var/lib/tt-device-broker": {"/var/lib/tt-device-broker/health/fsm.json": ""},
	} {
		t.Run(want, func(t *testing.T) {
			if got := Broker(plant(t, files)); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
