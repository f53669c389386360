package node

import (
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/hostfs"
)

// TestIdlePowerOutlivesTtmond: one that starts under load knows what boards draw at
// idle from the one before.
func TestIdlePowerOutlivesTtmond(t *testing.T) {
	cfg, log := Config{StateDir: t.TempDir(), Root: t.TempDir()}, slog.New(slog.DiscardHandler)
	want := []collect.IdlePower{{BusID: "0000:41:00.0", Serial: "0100", Watts: 30}}
	newIdleFile(cfg.StateDir, log).keep(want)
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c := collect.New(hostfs.At(cfg.Root), collect.Options{})
		c.RestoreIdlePower(newIdleFile(cfg.StateDir, log).kept)
		got := c.IdlePower()
		c.Close()
		if slices.Equal(got, want) {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
	f := newIdleFile(cfg.StateDir, log)
	if err := os.WriteFile(f.path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := newIdleFile(cfg.StateDir, log).kept; got != nil {
		t.Errorf("%+v of a broken file", got)
	}
}
