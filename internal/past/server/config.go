package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"

	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/collect/assess/setting"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/node/unixsock"
	"github.com/ttmon/ttmon/internal/past/fleet"
	"github.com/ttmon/ttmon/internal/past/server/vendor"
)

// Config is the configuration file, after defaults and flags.
type Config struct {
	StateDir string         `toml:"state_dir" comment:"Where history, events and alerts are kept."`
	Socket   string         `toml:"socket" comment:"Where ttmon asks about the past."`
	Mode     string         `toml:"mode" comment:"Permissions of the socket, octal: who may ask."`
	Daemon   string         `toml:"daemon" comment:"Socket of the ttmond that is followed; empty: the one of this host, or, where none runs, what this user can see."`
	Root     string         `toml:"root" comment:"The root directory of the host where no ttmond runs: / unless ttmon-server runs in a container."`
	Collect  daemon.Collect `toml:"collect" comment:"The collector, where no ttmond runs."`
	// Conditions are those of ttmond where one runs: it has judged then. Where
	// none runs, they are read from its file unless they are set here.
	Conditions assess.Thresholds `toml:"conditions" comment:"From which values on something is wrong, where no ttmond runs; without this section, as in ttmond.toml."`
	// Telemetry is the address of tt-telemetry.
	Telemetry string  `toml:"tt_telemetry" comment:"Address of tt-telemetry, Tenstorrent's exporter, on this host (http://127.0.0.1:8080/metrics): values of chips behind Ethernet, link and memory counters. Empty: it is not asked."`
	Listen    Listen  `toml:"listen" comment:"HTTP for Prometheus, Grafana and browsers."`
	Metrics   Metrics `toml:"metrics" comment:"What /metrics, history and remote write hold."`
	History   History `toml:"history" comment:"What happened: numbers, events, whole snapshots."`
	Fleet     Fleet   `toml:"fleet" comment:"The page's view of many hosts."`
	Alerts    Alerts  `toml:"alerts" comment:"Who is told when something is wrong."`
	// Engines that samples are sent to.
	RemoteWrite []RemoteWrite    `toml:"remote_write,omitempty"`
	Log         daemon.LogConfig `toml:"log"`
}

// Paths are the places of a server: those of the system's, or a user's own.
type Paths struct {
	Config     string // ttmon-server.toml
	Conditions string // ttmond.toml, for the thresholds
	System     string // that of the host, where Conditions is the user's own
	StateDir   string
	Socket     string
	Rules      string
}

// SystemPaths are those of the unit.
func SystemPaths() Paths {
	return Paths{
		Config: "/etc/ttmon/ttmon-server.toml", Conditions: "/etc/ttmon/ttmond.toml", StateDir: "/var/lib/ttmon-server",
		Socket: apitype.ServerSocket, Rules: "/etc/ttmon/alerts.toml",
	}
}

// DefaultPaths are root's, or the user's own.
func DefaultPaths() Paths {
	if os.Geteuid() == 0 {
		return SystemPaths()
	}
	return Paths{
		Config: daemon.ConfigPath("ttmon-server.toml"), Conditions: daemon.ConfigPath("ttmond.toml"), System: setting.System, StateDir: daemon.StateDir("ttmon"),
		Socket: daemon.UserSocket("server.sock"), Rules: daemon.ConfigPath("alerts.toml"),
	}
}

// Default is the configuration without a file.
func Default(p Paths) Config {
	return Config{
		StateDir: p.StateDir, Socket: p.Socket, Mode: "0666", Root: "/",
		Conditions: assess.Default(),
		Collect:    daemon.NewCollect(collect.DefaultTimeout),
		Listen:     Listen{Address: DefaultListen},
		Metrics:    Metrics{Workloads: "auto"},
		History:    defaultHistory(),
		Alerts:     defaultAlerts(p.Rules),
		Fleet:      Fleet{NodeURL: fleet.UsualPage},
		Log:        daemon.LogConfig{Level: "info", Format: "auto"},
	}
}

// Read reads the configuration over the defaults: the thresholds of ttmond, then
// file, which must exist if it was named.
func (c *Config) Read(p Paths, file string) error {
	t, err := setting.Read(p.Conditions, p.System)
	if err != nil {
		return err
	}
	c.Conditions = t
	path := file
	if path == "" {
		path = p.Config
	}
	err = daemon.ReadConfig(path, c)
	if file == "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Check finds mistakes, and makes paths absolute.
func (c *Config) Check() error {
	for what, path := range map[string]*string{"socket": &c.Socket, "state_dir": &c.StateDir, "root": &c.Root} {
		abs, err := filepath.Abs(*path)
		if err != nil || *path == "" {
			return fmt.Errorf("%s: %q is not a path", what, *path)
		}
		*path = abs
	}
	if err := hostfs.CheckDir(c.Root); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	if len(c.Socket) > unixsock.MaxPath {
		return fmt.Errorf("socket: %s is too long: a socket's path may have %d bytes", c.Socket, unixsock.MaxPath)
	}
	if _, err := daemon.ParseMode(c.Mode); err != nil {
		return fmt.Errorf("mode: %w", err)
	}
	if c.Telemetry != "" {
		if err := vendor.Check(c.Telemetry); err != nil {
			return fmt.Errorf("tt_telemetry: %w", err)
		}
	}
	if err := c.Conditions.Check(); err != nil {
		return err
	}
	for _, check := range []func() error{
		c.Collect.Check, c.Log.Check, c.Listen.check, c.Metrics.check, c.History.check, c.Fleet.check, c.Alerts.check, c.checkRemoteWrite,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkRemoteWrite() error {
	for i := range c.RemoteWrite {
		if err := c.RemoteWrite[i].check(); err != nil {
			return err
		}
		for _, other := range c.RemoteWrite[:i] {
			if other.URL == c.RemoteWrite[i].URL {
				return fmt.Errorf("remote_write.url: %s is given twice", other.URL)
			}
		}
	}
	return nil
}

// Print writes the configuration as a file that could be read again.
func (c *Config) Print(w io.Writer) error { return toml.NewEncoder(w).Encode(c) }
