package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/base/config"
)

// topConfig is the configuration that ttmon top would run with.
func topConfig(t *testing.T, env map[string]string, args ...string) (config.Config, error) {
	t.Helper()
	tc := &topCmd{app: newApp(os.Stdout, os.Stderr, func(k string) string { return env[k] })}
	tc.make()
	if err := tc.cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	_, c, err := tc.configure()
	return c, err
}

func TestTopFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(file, []byte("[top]\ninterval = \"3s\"\n[top.charts]\nmetrics = [\"power\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		env  map[string]string
		want func(*config.Config)
	}{
		{nil, nil, func(*config.Config) {}},
		{[]string{"--delay", "5"}, nil, func(c *config.Config) { c.Top.Interval = config.Duration(500 * time.Millisecond) }},
		{[]string{"-pPCr"}, nil, func(c *config.Config) {
			c.Top.Charts.Show, c.Top.Processes.Show, c.Display.Theme, c.Top.Charts.Reverse = "never", false, "mono", true
		}},
		{[]string{"-i", "0,c1:00.0", "--filter", "user=root", "--layout", "grid", "--theme", "light", "--readonly", "-E", "30"}, nil, func(c *config.Config) {
			c.Top.Devices.Only, c.Top.Processes.Filter, c.Top.Devices.Layout = []string{"0", "c1:00.0"}, "user=root", "grid"
			c.Display.Theme, c.Top.ReadOnly = "light", true
		}},
		{[]string{"-c", file}, map[string]string{"TTMON_DISPLAY_THEME": "dark"}, func(c *config.Config) {
			c.Top.Interval, c.Top.Charts.Metrics, c.Display.Theme = config.Duration(3*time.Second), []string{"power"}, "dark"
		}},
		{[]string{"-c", file, "--interval", "2s"}, map[string]string{"TTMON_TOP_INTERVAL": "9s"}, func(c *config.Config) {
			c.Top.Interval, c.Top.Charts.Metrics = config.Duration(2*time.Second), []string{"power"}
		}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			want := config.Default()
			c.want(&want)
			got, err := topConfig(t, c.env, c.args...)
			if err != nil {
				t.Error(err)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTopFlagErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--delay", "0"}, "--delay takes tenths of a second"},
		{[]string{"--theme", "pink"}, `theme "pink": none of`},
		{[]string{"--layout", "round"}, `--layout: "round" is not one of`},
		{[]string{"-c", "/no/such/file"}, "--config-file: stat /no/such/file"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			_, err := topConfig(t, nil, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}
