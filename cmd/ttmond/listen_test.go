package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListenAddress(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password := write("password.yml", "basic_auth_users: {alice: $2a$04$Fq0CaYHpQ9BXl1pWdAuOKeoR2EWgWPJCPMsVLv2tSNbCExYMsbHzS}\n")
	empty := write("empty.yml", "{}\n")
	broken := write("broken.yml", "basic_auth: [\n")
	for _, c := range []struct {
		address, web, want string
	}{
		{"127.0.0.1:9108", "", ""},
		{"[::1]:9108", "", ""},
		{"localhost:9108", "", ""},
		{"off", "", ""},
		{"0.0.0.0:9108", "", "can be reached from other machines"},
		{":9108", "", "can be reached from other machines"},
		{"192.0.2.1:9108", empty, "can be reached from other machines"},
		{"0.0.0.0:9108", password, ""},
		{"127.0.0.1:9108", broken, "listen.web_config"},
		{"127.0.0.1:9108", dir + "/none.yml", "listen.web_config"},
		{"9108", "", "not an address like"},
		{"127.0.0.1:nonsense", "", "not a port"},
	} {
		err := (&listenConfig{c.address, c.web}).check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %q: %v, want %q", c.address, c.web, err, c.want)
		}
	}
}

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
		"/-/healthy":      "ttmond is alive",
		"/-/ready":        "ttmond is ready",
		"/api/v1/version": `"name":"ttmond"`,
		"/api/v1/nothing": "404",
		"/nothing":        "404",
		"/sd":             `"targets":["` + address + `"]`,
	} {
		if got := get(t, "http://"+address+path, nil); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	// A name that somebody else lets point here is not ours.
	if got := get(t, "http://"+address+"/metrics", http.Header{"Host": {"evil.example"}}); !strings.HasPrefix(got, "403") {
		t.Errorf("evil.example gets %.80s", got)
	}
}

// A port that is taken is taken later, and the daemon does its work meanwhile.
func TestListenWaits(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	i := h.start("--listen", taken.Addr().String())
	await(t, "the warning", func() bool { return strings.Contains(i.log.String(), "no HTTP for now") })
	h.snapshot()
	taken.Close()
	await(t, "HTTP", func() bool { return strings.Contains(i.log.String(), "serving HTTP") })
}
