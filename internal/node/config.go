package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/node/unixsock"
	"github.com/ttmon/ttmon/internal/source/allocsock"
	"github.com/ttmon/ttmon/internal/source/firmware"
	"github.com/ttmon/ttmon/internal/source/uprobe"
)

// Config is the configuration file, after defaults and flags.
type Config struct {
	StateDir   string            `toml:"state_dir" comment:"Where state is kept that survives a restart."`
	Root       string            `toml:"root" comment:"The root directory of the host: / unless ttmond runs in a container."`
	Firmware   firmware.Mode     `toml:"firmware" comment:"What is read of the chips' firmware: off, table or full. The only thing that touches a chip; see docs/firmware.md."`
	Alloc      allocConfig       `toml:"alloc" comment:"The socket on which programs report allocations."`
	API        apiConfig         `toml:"api" comment:"The socket on which ttmon asks."`
	Collect    daemon.Collect    `toml:"collect" comment:"The background collector."`
	Conditions assess.Thresholds `toml:"conditions" comment:"From which values on something is wrong, for all views and alerts alike."`
	Uprobe     uprobeConfig      `toml:"uprobe" comment:"Watching the allocators of unmodified programs through the kernel."`
	Kubernetes kubernetesConfig  `toml:"kubernetes" comment:"What the node's kubelet knows."`
	Log        daemon.LogConfig  `toml:"log"`

	keep bool // from the command line only
}

type allocConfig struct {
	Socket     string `toml:"socket" comment:"Old clients know only the default."`
	Mode       string `toml:"mode" comment:"Permissions, octal: who may report."`
	Group      string `toml:"group" comment:"Group of the socket, by name or number; empty for ttmond's own."`
	MaxBuffers int    `toml:"max_buffers" comment:"Live buffers kept account of, at about 45 bytes each. One user gets a quarter."`
	Unopened   bool   `toml:"unopened" comment:"Count reports for devices that their program does not have open, marked ~. Anybody who may use the socket can then claim any device."`
	Keeper     bool   `toml:"keeper" comment:"Keep clients connected while ttmond is stopped: old ones die of a closed connection."`
}

type apiConfig struct {
	Socket string `toml:"socket"`
	Mode   string `toml:"mode" comment:"Permissions, octal: who may ask."`
	Group  string `toml:"group"`
}

// Default is good for root, and for a user who tries it out.
func Default() Config {
	c := Config{
		StateDir:   "/var/lib/ttmon",
		Root:       "/",
		Firmware:   firmware.Off,
		Alloc:      allocConfig{Socket: allocsock.DefaultPath, Mode: "0666", MaxBuffers: ledger.DefaultMaxBuffers, Keeper: true},
		API:        apiConfig{Socket: "/run/ttmon/ttmond.sock", Mode: "0666"},
		Collect:    daemon.NewCollect(collect.DefaultTimeout),
		Conditions: assess.Default(),
		Kubernetes: defaultKubernetes(),
		Uprobe:     uprobeConfig{Enabled: true, Libraries: []string{}, Limit: uprobe.DefaultLimit},
		Log:        daemon.LogConfig{Level: "info", Format: "auto"},
	}
	if os.Geteuid() != 0 {
		c.StateDir, c.API.Socket = daemon.StateDir("ttmon"), daemon.UserSocket("ttmond.sock")
	}
	return c
}

// Options are what a command line says; they go before the file.
type Options struct {
	File                                   string // empty: where it is expected, if it is there
	AllocSocket, APISocket, StateDir, Root string
	Firmware                               string
	NoUprobe, Waits, Unopened              bool
	Verbose, Quiet                         bool
}

// Configure joins defaults, file and options, and checks the result.
func Configure(o Options) (Config, error) {
	c := Default()
	path := o.File
	if path == "" {
		path = daemon.ConfigPath("ttmond.toml")
	}
	if err := daemon.ReadConfig(path, &c); err != nil && (o.File != "" || !errors.Is(err, fs.ErrNotExist)) {
		return c, err
	}
	for to, from := range map[*string]string{
		&c.Alloc.Socket: o.AllocSocket, &c.API.Socket: o.APISocket, &c.StateDir: o.StateDir, &c.Root: o.Root,
	} {
		if from != "" {
			*to = from
		}
	}
	if o.Firmware != "" {
		c.Firmware = firmware.Mode(o.Firmware)
	}
	switch {
	case o.Verbose && o.Quiet:
		return c, errors.New("--verbose and --quiet cannot be used together")
	case o.Verbose:
		c.Log.Level = "debug"
	case o.Quiet:
		c.Log.Level = "warn"
	}
	c.Uprobe.Enabled = c.Uprobe.Enabled && !o.NoUprobe
	c.Uprobe.Waits = c.Uprobe.Waits || o.Waits
	c.Alloc.Unopened = c.Alloc.Unopened || o.Unopened
	return c, c.check()
}

// check finds mistakes, and makes paths absolute.
func (c *Config) check() error {
	if err := c.checkSockets(); err != nil {
		return err
	}
	if c.Alloc.MaxBuffers < 1 || c.Alloc.MaxBuffers > ledger.MaxMaxBuffers {
		return fmt.Errorf("alloc.max_buffers: %d is not between 1 and %d", c.Alloc.MaxBuffers, ledger.MaxMaxBuffers)
	}
	if err := c.Collect.Check(); err != nil {
		return err
	}
	if err := c.Log.Check(); err != nil {
		return err
	}
	if err := c.checkFirmware(); err != nil {
		return err
	}
	if err := c.Conditions.Check(); err != nil {
		return err
	}
	return c.Uprobe.check()
}

// checkSockets is for paths, and for who may use what is there.
func (c *Config) checkSockets() error {
	for what, path := range map[string]*string{"alloc.socket": &c.Alloc.Socket, "api.socket": &c.API.Socket, "state_dir": &c.StateDir, "root": &c.Root} {
		abs, err := filepath.Abs(*path)
		if err != nil || *path == "" {
			return fmt.Errorf("%s: %q is not a path", what, *path)
		}
		*path = abs
	}
	if err := hostfs.CheckDir(c.Root); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	for what, mode := range map[string]string{"alloc.mode": c.Alloc.Mode, "api.mode": c.API.Mode} {
		if _, err := daemon.ParseMode(mode); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	for what, group := range map[string]string{"alloc.group": c.Alloc.Group, "api.group": c.API.Group} {
		if _, err := daemon.LookUpGroup(group); err != nil {
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

// Print writes the configuration as a file that could be read again.
func (c *Config) Print(w io.Writer) error { return toml.NewEncoder(w).Encode(c) }
