package host

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// daemon is a ttmond that answers with a snapshot.
func daemon(t *testing.T, s *model.Snapshot) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(wire.Append(nil, s)) })}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return socket
}

// open opens a host below an empty root; env is pairs of names and values.
func open(t *testing.T, o Options, env ...string) (*Host, error) {
	t.Helper()
	o.Getenv = func(name string) string {
		for i := 0; i < len(env); i += 2 {
			if env[i] == name {
				return env[i+1]
			}
		}
		return ""
	}
	h, err := Open(o)
	if err == nil {
		t.Cleanup(h.Close)
	}
	return h, err
}

func TestOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		o    Options
		env  []string
		want string // in the error
	}{
		"a daemon and none":  {Options{Daemon: "/s", Direct: true}, nil, "--daemon and --direct"},
		"a root that is not": {Options{Root: "/no/such"}, nil, "--root: stat /no/such"},
		"a file as root":     {Options{Root: file}, nil, "is not a directory"},
		"a bad timeout":      {Options{}, []string{timeoutVar, "soon"}, "is not a duration between"},
		"a long timeout":     {Options{}, []string{timeoutVar, "2h"}, "is not a duration between"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, tt.o, tt.env...)
			if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != exit.BadArgument || !strings.Contains(err.Error(), tt.want) {
				t.Error(err)
			}
		})
	}
}

// What ttmond says is shown where it is of this host and of now; a daemon that
// the user named is the only source.
func TestNext(t *testing.T) {
	fresh, old, simulated := sample.Four(), sample.Four(), sample.Four()
	fresh.Time, old.Time, simulated.Time = time.Now(), time.Now().Add(-time.Minute), time.Now()
	fresh.Simulated, old.Simulated, simulated.Simulated = false, false, true
	for _, tt := range []struct {
		name   string
		snap   *model.Snapshot
		named  bool
		source model.Origin
		code   int
	}{
		{"found", fresh, false, model.Daemon, 0},
		{"named", fresh, true, model.Daemon, 0},
		{"found, of another host", simulated, false, model.Direct, 0},
		{"named, of another host", simulated, true, "", exit.Internal},
		{"found, and stands still", old, false, model.Direct, 0},
		{"named, and stands still", old, true, model.Daemon, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			socket := daemon(t, tt.snap)
			o, env := Options{}, []string{timeoutVar, "30s"}
			if tt.named {
				o.Daemon = socket
			} else {
				dir := t.TempDir()
				if err := errors.Join(os.Mkdir(filepath.Join(dir, "ttmon"), 0o700), os.Symlink(socket, filepath.Join(dir, "ttmon", "ttmond.sock"))); err != nil {
					t.Fatal(err)
				}
				env = append(env, "XDG_RUNTIME_DIR", dir)
			}
			h, err := open(t, o, env...)
			if err != nil {
				t.Fatal(err)
			}
			s, err := h.Next(t.Context())
			if tt.code != 0 {
				if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != tt.code {
					t.Errorf("%v, want code %d", err, tt.code)
				}
				return
			}
			if err != nil || s.Source != tt.source {
				t.Errorf("from %v, %v", s.Source, err)
			}
		})
	}
}

// A recording stands for the host.
func TestInstead(t *testing.T) {
	h, err := open(t, Options{Instead: still{sample.One()}, Root: "/no/such"})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := h.Next(t.Context()); err != nil || len(s.Devices) != 1 {
		t.Error(err)
	}
}

func TestInstalledDriver(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"proc/sys/kernel/osrelease":                "6.8.0-31-generic\n",
		"lib/modules/6.8.0-31-generic/modules.dep": "kernel/fs/fuse/fuse.ko.zst:\nupdates/dkms/tenstorrent.ko.zst: kernel/a.ko\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := &Host{Root: hostfs.At(dir)}
	got := h.Absence(sample.NoDriver())
	if want := "it is installed (updates/dkms/tenstorrent.ko.zst): run modprobe tenstorrent"; got == nil || !strings.Contains(got.Error(), want) {
		t.Errorf("%v, want %q in it", got, want)
	}
}

type still struct{ *model.Snapshot }

func (s still) Next(context.Context) (*model.Snapshot, error) { return s.Snapshot, nil }

func TestAbsence(t *testing.T) {
	for name, tt := range map[string]struct {
		s    *model.Snapshot
		code int
	}{"no driver": {sample.NoDriver(), exit.NoDriver}, "no device": {sample.None(), exit.NoDevice}} {
		t.Run(name, func(t *testing.T) {
			if e, ok := errors.AsType[*exit.Error](Absence(tt.s)); !ok || e.Code != tt.code {
				t.Error(e)
			}
		})
	}
	if err := Absence(sample.One()); err != nil {
		t.Error(err)
	}
	if e, ok := errors.AsType[*exit.Error](Troubled(sample.Troubles())); !ok || e.Code != exit.Trouble || e.Err != nil {
		t.Error(e)
	}
}

// TestThresholds: without a ttmond, conditions are judged by the thresholds that
// one would read; a file that is wrong is reported once, and only where it is used.
func TestThresholds(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		daemon bool
		margin float64
		warned bool
	}{
		"set":                   {text: "[conditions]\nhot_margin_c = 12\n", margin: 12},
		"not set":               {text: "", margin: 5},
		"wrong":                 {text: "[conditions]\nhot_margin_c = -1\n", margin: 5, warned: true},
		"wrong, and not needed": {text: "[conditions]\nhot_margin_c = -1\n", daemon: true, margin: 5},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, "etc/ttmon"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "etc/ttmon/ttmond.toml"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var warnings []error
			o := Options{Root: root, Warn: func(err error) { warnings = append(warnings, err) }}
			if c.daemon {
				o.Daemon = daemon(t, sample.One())
			}
			h, err := open(t, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Thresholds().HotMargin; got != c.margin {
				t.Errorf("a margin of %g, want %g", got, c.margin)
			}
			if warned := len(warnings) == 1 && strings.Contains(warnings[0].Error(), "ttmond.toml"); warned != c.warned || len(warnings) > 1 {
				t.Errorf("warnings %v", warnings)
			}
		})
	}
}

// A first look does not show what ttmond had before it was asked, as long as ttmond says
// that it makes a new one.
func TestFirstLookWaits(t *testing.T) {
	before, now := sample.Four(), sample.One()
	before.Time, before.Simulated = time.Now(), false
	asked := 0
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/snapshot" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if asked++; asked < 4 {
			w.Header().Set(apitype.LateHeader, "1")
			w.Write(wire.Append(nil, before))
			return
		}
		now.Time, now.Simulated = time.Now(), false
		w.Write(wire.Append(nil, now))
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	h, err := open(t, Options{Daemon: socket}, timeoutVar, "30s")
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Next(t.Context())
	if err != nil || len(s.Devices) != 1 {
		t.Errorf("%d devices after %d requests, %v", len(s.Devices), asked, err)
	}
}

// The socket of a ttmond that was killed does not hide the one that runs.
func TestKilledDaemonHidesNone(t *testing.T) {
	s := sample.Four()
	s.Time, s.Simulated = time.Now(), false
	dead := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	live := daemon(t, s)
	for name, sockets := range map[string][]string{"dead first": {"/no/such", dead, live}, "live first": {live, dead}} {
		t.Run(name, func(t *testing.T) {
			h := &Host{Sockets: sockets, Timeout: 30 * time.Second}
			defer h.Close()
			if got := h.Socket(); got != live {
				t.Errorf("the socket is %s", got)
			}
			if s, err := h.ReadSnapshot(t.Context()); err != nil || s == nil || s.Source != model.Daemon {
				t.Errorf("%v, %v", s, err)
			}
		})
	}
}
