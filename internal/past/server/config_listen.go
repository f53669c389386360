package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/ttmon/ttmon/internal/node/daemon"
)

// Listen is the TCP listener: /metrics, the API, PromQL.
type Listen struct {
	Address   string `toml:"address" comment:"Where /metrics, the API and PromQL are served over HTTP; off for nowhere."`
	WebConfig string `toml:"web_config" comment:"TLS, client certificates and passwords: a web configuration file of Prometheus's exporter-toolkit."`
}

// Metrics is what /metrics, history and remote write hold.
type Metrics struct {
	Workloads string `toml:"workloads" comment:"Memory by container, pod, Slurm job and unit: always, never, or auto: unless /proc hides processes (hidepid)."`
	Processes int    `toml:"processes" comment:"How many processes get series of their own; 0 for none. Pids make many series."`
	Estimates bool   `toml:"estimates" comment:"Show estimates (activity) among the measurements."`
}

const (
	// DefaultListen is the address of a server that is not told another.
	DefaultListen = "127.0.0.1:9108"
	maxWorkloads  = 256
	listenOff     = "off"
)

func (c *Metrics) check() error {
	switch c.Workloads {
	case "auto", "always", "never":
	default:
		return fmt.Errorf("metrics.workloads: %q is not one of auto, always, never", c.Workloads)
	}
	if c.Processes < 0 || c.Processes > 4096 {
		return fmt.Errorf("metrics.processes: %d is not between 0 and 4096", c.Processes)
	}
	return nil
}

// check rejects an address that others can reach without authentication.
func (c *Listen) check() error {
	if c.Address == listenOff {
		return nil
	}
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return fmt.Errorf("listen.address: %q is not an address like %s, nor off", c.Address, DefaultListen)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("listen.address: %q is not a port", port)
	}
	if c.WebConfig != "" {
		if err := web.Validate(c.WebConfig); err != nil {
			return fmt.Errorf("listen.web_config: %w", err)
		}
	}
	if loopback(host) {
		return nil
	}
	guarded, err := guards(c.WebConfig)
	if err != nil {
		return fmt.Errorf("listen.web_config: %w", err)
	}
	if !guarded {
		return fmt.Errorf("listen.address: %s can be reached from other machines without a password: "+
			"set listen.web_config to a file with tls_server_config or basic_auth_users, or listen on 127.0.0.1", c.Address)
	}
	return nil
}

// loopback reports whether only this machine can reach an address. A name is
// what it resolves to now, all of it.
func loopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	if host == "" {
		return false
	}
	list, err := net.LookupIP(host)
	if err != nil {
		return false
	}
	for _, ip := range list {
		if !ip.IsLoopback() {
			return false
		}
	}
	return len(list) > 0
}

// guards reports whether a web configuration authenticates clients: by passwords,
// or by certificates of its clients. TLS alone hides what is said and lets
// everybody ask; it is accepted as the operator's decision.
func guards(path string) (bool, error) {
	c, err := readWebConfig(path)
	return len(c.TLS) > 0 || len(c.Users) > 0, err
}

// webConfig is what matters here of a web configuration.
type webConfig struct {
	TLS   map[string]any    `yaml:"tls_server_config"`
	Users map[string]string `yaml:"basic_auth_users"`
}

func readWebConfig(path string) (c webConfig, err error) {
	if path == "" {
		return c, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	return c, yaml.Unmarshal(b, &c)
}

// tls reports whether browsers have to say https.
func (c *Listen) tls() bool {
	w, err := readWebConfig(c.WebConfig)
	return err == nil && len(w.TLS) > 0
}

var errNoTime = errors.New("not between 1m and 10 years")

// span checks a time for which something is kept.
func span(what string, d daemon.Duration) error {
	if d.Duration < time.Minute || d.Duration > 10*365*24*time.Hour {
		return fmt.Errorf("%s: %v is %w", what, d, errNoTime)
	}
	return nil
}
