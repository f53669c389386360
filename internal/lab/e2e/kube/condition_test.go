package kube

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/kube"
)

func newReader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

func keys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// The condition is a patch of a node's status, as the API server knows one.
func TestCondition(t *testing.T) {
	var node core.Node
	allowed := true
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed || r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "nodes is forbidden", http.StatusForbidden)
			return
		}
		if r.Method != "PATCH" || r.URL.Path != "/api/v1/nodes/node1/status" || r.Header.Get("Content-Type") != "application/strategic-merge-patch+json" {
			t.Errorf("%s %s of %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
		}
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		if err := d.Decode(&node); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, text := range map[string]string{"token": "secret\n", "ca.crt": string(authority)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n, err := kube.NewNode("node1", server.URL, dir)
	if err != nil {
		t.Fatal(err)
	}
	snap := &model.Snapshot{Devices: []model.Device{{Index: 0, State: model.StateOK}, {Index: 1, BusID: "0000:02:00.0", State: model.StateHung}}}
	c := kube.Of(snap)
	c.LastHeartbeatTime = time.Now()
	if err := n.Set(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	got := node.Status.Conditions[0]
	if got.Type != "TenstorrentProblem" || got.Status != core.ConditionTrue || got.Reason != "DeviceHung" || got.Message != "device 1 (0000:02:00.0): hung → tt-smi -r /dev/tenstorrent/1" || got.LastHeartbeatTime.IsZero() {
		t.Errorf("%+v", got)
	}
	snap.Devices = snap.Devices[:1]
	if c := kube.Of(snap); c.Status != string(core.ConditionFalse) || c.Reason != "DevicesWork" {
		t.Errorf("%+v", c)
	}
	allowed = false
	if err := n.Set(t.Context(), c); err == nil || !strings.Contains(err.Error(), "nodes is forbidden") {
		t.Errorf("a refusal: %v", err)
	}
}
