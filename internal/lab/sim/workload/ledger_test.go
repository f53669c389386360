package workload_test

import (
	"path/filepath"
	"testing"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

func TestLedgerWorkload(t *testing.T) {
	h := start(t, "2xp150a", "name=own,kind=ledger,dram=8G,blocks=4,hole=64M,tags=weights/kv")
	found, _ := filepath.Glob(h.Root() + "/dev/shm/" + ledgerfile.Prefix + "*")
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
