package kinds

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/sim"
	"github.com/ttmon/ttmon/internal/sim/workload"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

func TestLedgerWorkload(t *testing.T) {
	dir := t.TempDir()
	tr, err := sim.NewTree(sim.Options{Boards: "2xp150a", Procs: []string{"name=own,kind=ledger,dram=8G,blocks=4,hole=64M,tags=weights/kv"}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	found, _ := filepath.Glob(dir + "/dev/shm/" + ledgerfile.Prefix + "*")
	if len(found) != 1 {
		t.Fatalf("ledgers %v", found)
	}
	l, err := ledgerfile.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Lists) < 2 || len(l.Blocks) != 8 {
		t.Fatalf("%d lists, %d blocks, want those of two chips", len(l.Lists), len(l.Blocks))
	}
	for i, b := range l.Blocks[:4] {
		if b.Bytes != 8<<30/8/4 || b.Address != uint64(i)*(8<<30/8/4+64<<20/8) {
			t.Errorf("block %d: %+v", i, b)
		}
		if tag := l.Sites[b.Site].Tag; tag != []string{"weights", "kv"}[i%2] {
			t.Errorf("block %d is called %q", i, tag)
		}
	}
}

func TestLedgerMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"dram=1G,cb=1M":             `no setting "cb"`,
		"dram=1G,l1=1G":             "bytes of L1",
		"dram=1G,work=dance":        "dance",
		"dram=lots":                 "dram=lots",
		"dram=33G":                  "does not fit",
		"dram=31G,blocks=9,hole=1G": "does not fit",
		"dram=1G,blocks=0":          "must be enough",
		"dram=3,banks=4":            "must be enough",
	} {
		t.Run(text, func(t *testing.T) {
			p := workload.Params{}
			for item := range strings.SplitSeq(text, ",") {
				key, value, _ := strings.Cut(item, "=")
				p[key] = value
			}
			if _, err := parseLedger(p); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}
