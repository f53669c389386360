package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/fleet"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/nearest"
	"github.com/ttmon/ttmon/internal/source/allocsock"
	"github.com/ttmon/ttmon/internal/source/firmware"
	"github.com/ttmon/ttmon/internal/source/uprobe"
	"github.com/ttmon/ttmon/internal/unixsock"
)

// config is the configuration file, after defaults and flags.
type config struct {
	StateDir string        `toml:"state_dir" comment:"Where state is kept that survives a restart."`
	Root     string        `toml:"root" comment:"The root directory of the host: / unless ttmond runs in a container."`
	Firmware firmware.Mode `toml:"firmware" comment:"What is read of the chips' firmware: off, table or full. The only thing that touches a chip; see docs/firmware.md."`
	Alloc    allocConfig   `toml:"alloc" comment:"The socket on which programs report allocations."`
	API      apiConfig     `toml:"api" comment:"The socket on which ttmon asks."`
	Collect  collectConfig `toml:"collect" comment:"The background collector."`
	Listen   listenConfig  `toml:"listen" comment:"HTTP for Prometheus, Grafana and browsers."`
	Metrics  metricsConfig `toml:"metrics" comment:"What /metrics, history and remote write hold."`
	History  historyConfig `toml:"history" comment:"What happened: numbers, events, whole snapshots."`
	Fleet    fleetConfig   `toml:"fleet" comment:"The page's view of many hosts."`
	Alerts   alertsConfig  `toml:"alerts" comment:"Who is told when something is wrong."`
	// Engines that samples are sent to.
	RemoteWrite []remoteWriteConfig `toml:"remote_write,omitempty"`
	Uprobe      uprobeConfig        `toml:"uprobe" comment:"Watching the allocators of unmodified programs through the kernel."`
	Kubernetes  kubernetesConfig    `toml:"kubernetes" comment:"What the node's kubelet knows."`
	Log         logConfig           `toml:"log"`

	takeover, keep bool // from the command line only
}

type allocConfig struct {
	Socket     string `toml:"socket" comment:"Old clients know only the default."`
	Mode       string `toml:"mode" comment:"Permissions, octal: who may report."`
	Group      string `toml:"group" comment:"Group of the socket, by name or number; empty for ttmond's own."`
	MaxBuffers int    `toml:"max_buffers" comment:"Live buffers kept account of, at about 45 bytes each, and as many again while a new ttmond takes over. One user gets a quarter."`
	Keeper     bool   `toml:"keeper" comment:"Keep clients connected while ttmond is stopped: old ones die of a closed connection."`
}

type apiConfig struct {
	Socket string `toml:"socket"`
	Mode   string `toml:"mode" comment:"Permissions, octal: who may ask."`
	Group  string `toml:"group"`
}

type collectConfig struct {
	Interval duration `toml:"interval" comment:"Time between two snapshots."`
	Patience duration `toml:"patience" comment:"How long devices, and processes, may take to answer; more where everything is slow."`
}

type logConfig struct {
	Level  string `toml:"level" comment:"debug, info, warn or error."`
	Format string `toml:"format" comment:"text, json, or auto: text, without the time in a systemd unit."`
}

// duration is a time.Duration written as in "1s".
type duration struct{ time.Duration }

func (d duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *duration) UnmarshalText(b []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(b))
	return err
}

// defaultConfig is good for root, and for a user who tries it out.
func defaultConfig() config {
	c := config{
		StateDir:   "/var/lib/ttmon",
		Root:       "/",
		Firmware:   firmware.Off,
		Alloc:      allocConfig{Socket: allocsock.DefaultPath, Mode: "0666", MaxBuffers: ledger.DefaultMaxBuffers, Keeper: true},
		API:        apiConfig{Socket: "/run/ttmon/ttmond.sock", Mode: "0666"},
		Collect:    collectConfig{Interval: duration{time.Second}, Patience: duration{collect.DefaultPatience}},
		Listen:     listenConfig{Address: defaultListen},
		Metrics:    metricsConfig{Workloads: "auto", Compat: []string{}},
		History:    defaultHistory(),
		Kubernetes: defaultKubernetes(),
		Alerts:     defaultAlerts(),
		Uprobe:     uprobeConfig{Enabled: true, Libraries: []string{}, Limit: uprobe.DefaultLimit},
		Fleet:      fleetConfig{NodeURL: fleet.UsualPage},
		Log:        logConfig{Level: "info", Format: "auto"},
	}
	if os.Geteuid() == 0 {
		return c
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		c.StateDir = filepath.Join(dir, "ttmon")
	} else if home := os.Getenv("HOME"); home != "" {
		c.StateDir = filepath.Join(home, ".local", "state", "ttmon")
	}
	c.API.Socket = filepath.Join(c.StateDir, "ttmond.sock") // a place that is the user's alone
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		c.API.Socket = filepath.Join(dir, "ttmon", "ttmond.sock")
	}
	return c
}

func defaultConfigPath() string {
	if os.Geteuid() == 0 {
		return "/etc/ttmon/ttmond.toml"
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ttmon", "ttmond.toml")
	}
	return filepath.Join(os.Getenv("HOME"), ".config", "ttmon", "ttmond.toml")
}

// configure joins defaults, file and flags, and checks the result.
func configure(f flags) (config, error) {
	c := defaultConfig()
	path := f.config
	if path == "" {
		path = defaultConfigPath()
	}
	b, err := os.ReadFile(path)
	switch {
	case err == nil:
		if err := c.parse(b); err != nil {
			return c, fmt.Errorf("%s: %w", path, err)
		}
	case f.config == "" && errors.Is(err, fs.ErrNotExist):
	default:
		return c, fmt.Errorf("reading the configuration: %w", err)
	}
	for to, from := range map[*string]string{
		&c.Alloc.Socket: f.allocSocket, &c.API.Socket: f.apiSocket, &c.StateDir: f.stateDir, &c.Root: f.root,
		&c.Listen.Address: f.listen,
	} {
		if from != "" {
			*to = from
		}
	}
	if f.firmware != "" {
		c.Firmware = firmware.Mode(f.firmware)
	}
	if f.verbose {
		c.Log.Level = "debug"
	}
	c.Uprobe.Enabled = c.Uprobe.Enabled && !f.noUprobe
	c.takeover = f.takeover
	return c, c.check()
}

// parse reads a file over c. Unknown keys are errors.
func (c *config) parse(b []byte) error {
	d := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields()
	err := d.Decode(c)
	if e, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		row, _ := e.Errors[0].Position()
		name := strings.Join(e.Errors[0].Key(), ".")
		hint := ""
		if near := nearest.Word(name, c.keys()); near != "" {
			hint = " (did you mean " + near + "?)"
		}
		return fmt.Errorf("line %d: there is no %s%s:\n%s", row, name, hint, e.Errors[0].String())
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, _ := e.Position()
		return fmt.Errorf("line %d: %w:\n%s", row, e, e.String())
	}
	return err
}

// keys are the names of all sections and settings.
func (c *config) keys() (names []string) {
	var add func(t reflect.Type, above string)
	add = func(t reflect.Type, above string) {
		for t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("toml"), ",")
			if name != "" && name != "-" {
				names = append(names, above+name)
				add(t.Field(i).Type, above+name+".")
			}
		}
	}
	add(reflect.TypeFor[config](), "")
	return names
}

// check finds mistakes, and makes paths absolute.
func (c *config) check() error {
	if err := c.checkSockets(); err != nil {
		return err
	}
	switch {
	case c.Alloc.MaxBuffers < 1 || c.Alloc.MaxBuffers > ledger.MaxMaxBuffers:
		return fmt.Errorf("alloc.max_buffers: %d is not between 1 and %d", c.Alloc.MaxBuffers, ledger.MaxMaxBuffers)
	case c.Collect.Interval.Duration < 100*time.Millisecond || c.Collect.Interval.Duration > time.Hour:
		return fmt.Errorf("collect.interval: %v is not between 100ms and 1h", c.Collect.Interval)
	case c.Collect.Patience.Duration < 10*time.Millisecond || c.Collect.Patience.Duration > time.Minute:
		return fmt.Errorf("collect.patience: %v is not between 10ms and 1m", c.Collect.Patience)
	case !slices.Contains([]string{"auto", "text", "json"}, c.Log.Format):
		return fmt.Errorf("log.format: %q is none of auto, text, json", c.Log.Format)
	}
	if _, err := parseLevel(c.Log.Level); err != nil {
		return err
	}
	for _, check := range []func() error{
		c.checkFirmware, c.Listen.check, c.Metrics.check, c.History.check, c.Uprobe.check, c.Fleet.check, c.Alerts.check, c.checkRemoteWrite,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkSockets is for paths, and for who may use what is there.
func (c *config) checkSockets() error {
	for what, path := range map[string]*string{"alloc.socket": &c.Alloc.Socket, "api.socket": &c.API.Socket, "state_dir": &c.StateDir, "root": &c.Root} {
		abs, err := filepath.Abs(*path)
		if err != nil || *path == "" {
			return fmt.Errorf("%s: %q is not a path", what, *path)
		}
		*path = abs
	}
	for what, mode := range map[string]string{"alloc.mode": c.Alloc.Mode, "api.mode": c.API.Mode} {
		if _, err := parseMode(mode); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	for what, group := range map[string]string{"alloc.group": c.Alloc.Group, "api.group": c.API.Group} {
		if _, err := lookUpGroup(group); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	for what, path := range map[string]string{"alloc.socket": c.Alloc.Socket, "api.socket": c.API.Socket + ".handover"} {
		if len(path) > unixsock.MaxPath {
			return fmt.Errorf("%s: %s is too long: a socket's path may have %d bytes", what, strings.TrimSuffix(path, ".handover"),
				unixsock.MaxPath-len(path)+len(strings.TrimSuffix(path, ".handover")))
		}
	}
	if c.Alloc.Socket == c.API.Socket {
		return fmt.Errorf("alloc.socket and api.socket are both %s", c.API.Socket)
	}
	return nil
}

func (c *config) checkRemoteWrite() error {
	for i := range c.RemoteWrite {
		if err := c.RemoteWrite[i].check(); err != nil {
			return err
		}
		for _, other := range c.RemoteWrite[:i] {
			if other.URL == c.RemoteWrite[i].URL {
				return fmt.Errorf("remote_write.url: %s is there twice", other.URL)
			}
		}
	}
	return nil
}

func parseMode(s string) (fs.FileMode, error) {
	m, err := strconv.ParseUint(s, 8, 32)
	if err != nil || m == 0 || m > 0o777 {
		return 0, fmt.Errorf("%q is not a permission like 0660", s)
	}
	return fs.FileMode(m), nil
}

// lookUpGroup returns 0 for the empty name.
func lookUpGroup(s string) (gid int, err error) {
	if s == "" {
		return 0, nil
	}
	if gid, err := strconv.Atoi(s); err == nil && gid >= 0 {
		return gid, nil
	}
	g, err := user.LookupGroup(s)
	if err != nil {
		return 0, fmt.Errorf("there is no group %q", s)
	}
	return strconv.Atoi(g.Gid)
}

// print writes the configuration as a file that could be read again.
func (c *config) print(w io.Writer) error { return toml.NewEncoder(w).Encode(c) }
