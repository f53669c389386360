package main

import (
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestListen(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.simulate("p150a")
	address := freePort(t)
	h.start("--listen", address)
	var page string
	await(t, "the first page", func() bool {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		c.Close()
		page = get(t, "http://"+address+"/metrics", nil)
		return strings.Contains(page, "tenstorrent_device_info{")
	})
	if !strings.Contains(page, "tenstorrent_simulated 1\n") {
		t.Error("a simulated host does not say so")
	}
	om := get(t, "http://"+address+"/metrics", http.Header{"Accept": {"application/openmetrics-text; version=1.0.0"}})
	if !strings.HasSuffix(om, "# EOF\n") || !strings.Contains(om, "# TYPE tenstorrent_heartbeat counter\n") {
		t.Errorf("that is not OpenMetrics:\n%s", om)
	}
	for path, want := range map[string]string{
		"/-/healthy":      "ttmon-server is alive",
		"/-/ready":        "ttmon-server is ready",
		"/api/v1/version": `"name":"ttmon-server"`,
		"/api/v1/nothing": "404",
		"/nothing":        "404",
	} {
		t.Run(path, func(t *testing.T) {
			if got := get(t, "http://"+address+path, nil); !strings.Contains(got, want) {
				t.Error(got)
			}
		})
	}
	// A foreign name that resolves to this address is refused.
	if got := get(t, "http://"+address+"/metrics", http.Header{"Host": {"evil.example"}}); !strings.HasPrefix(got, "403") {
		t.Errorf("evil.example gets %.80s", got)
	}
}

// A port that is taken is taken later, and the server does its work meanwhile.
func TestListenWaits(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	i := h.start("--listen", taken.Addr().String())
	await(t, "the warning", func() bool { return strings.Contains(i.log.String(), "cannot listen for HTTP") })
	if status, _ := h.get("/v1/version"); status != 200 {
		t.Errorf("the socket answers %d meanwhile", status)
	}
	taken.Close()
	await(t, "HTTP", func() bool { return strings.Contains(i.log.String(), "serving HTTP") })
}
