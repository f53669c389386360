package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestExporter: ttmon-server asks the vendor's exporter for the chip R of an n300,
// which ttmond does not read, and says where its values come from.
func TestExporter(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n300"})
	d := startDaemon(t, h)
	root := func(args ...string) result { return runIn(t, h, args...) }
	s := d.until("ttmond has read the device", root, func(s *model.Snapshot) bool { return device(t, s, 0).Temperature.Known() })
	if r := device(t, s, 0).Chips[1]; !r.Remote || r.Temperature.Known() {
		t.Fatalf("chip R before: %+v", r)
	}
	own := device(t, s, 0).Temperature.V
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for chip, temperature := range []float64{own, 47.5} {
			fmt.Fprintf(w, "tt_asic_temperature_celsius{hostname=\"h\",tray=\"0\",chip=\"%d\",unit=\"°C\"} %v %d\n\n", chip, temperature, time.Now().UnixMilli())
			fmt.Fprintf(w, "tt_ethernet_retrain_count{hostname=\"h\",tray=\"0\",chip=\"%d\",channel=\"8\"} 3\n\n", chip)
		}
	}))
	t.Cleanup(exporter.Close)
	config := filepath.Join(t.TempDir(), "server.toml")
	if err := os.WriteFile(config, []byte(fmt.Sprintf("tt_telemetry = %q\n", exporter.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	d.startServer("--config", config)
	server := &daemon{t: t, host: h, api: filepath.Join(filepath.Dir(d.api), "server.sock")}
	got := server.until("the server has asked the exporter", root, func(s *model.Snapshot) bool { return device(t, s, 0).Chips[1].Temperature.Known() })
	one := device(t, got, 0)
	if r := one.Chips[1]; r.Temperature.V != 47.5 || r.SensorsFrom != model.ByExporter || r.Power.Known() || r.Power.Why == "" {
		t.Errorf("chip R: %+v", r)
	}
	if p := one.Telemetry.Ports; one.Telemetry.Way != model.ByExporter || len(p) != 1 || p[0].Retrains.V != 3 || p[0].Corrected.Known() {
		t.Errorf("telemetry by %q, ports %+v", one.Telemetry.Way, p)
	}
	if r := runIn(t, h, "smi", "--daemon", server.api, "--query-device=temperature.remote,power.draw.remote", "--format=csv,noheader,nounits"); r.code != 0 || strings.TrimSpace(r.out) != "47.5, [N/A]" {
		t.Errorf("query fields: %+v", r)
	}
	d.awaitSeries("tenstorrent_remote_temperature_celsius == 47.5", 1)
	d.awaitSeries("tenstorrent_remote_power_watts", 0)
}
