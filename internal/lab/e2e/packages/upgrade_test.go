//go:build packages

package packages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/e2e/machine"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

// The last commit in which ttmond did what ttmon-server does now.
const (
	singleCommit  = "f5cc2f8"
	singleVersion = "0.1.0-dev.0"
)

// errNoCommit is the reason in a clone without the whole history, and in an archive.
var errNoCommit = errors.New("this clone does not have commit " + singleCommit)

var singleRelease = sync.OnceValues(buildSingle)

// buildSingle makes the packages of the release with the single daemon from its own
// sources, once: later runs find them in the cache.
func buildSingle() (dir string, err error) {
	root, err := ttnn.Repository()
	if err != nil {
		return "", err
	}
	if err := exec.Command("git", "-C", root, "cat-file", "-e", singleCommit+"^{commit}").Run(); err != nil {
		return "", errNoCommit
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "ttmon", "base-"+singleCommit, "packages")
	if _, err := os.Stat(filepath.Join(dir, "SHA256SUMS")); err == nil { // written last
		return dir, nil
	}
	source, err := os.MkdirTemp("", "single-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(source)
	cmd := exec.Command("sh", "-euc", `git -C "$1" archive "$2" | tar -x -C "$3"; exec "$3/tools/package/build" packages "$4"`,
		"sh", root, singleCommit, source, dir)
	cmd.Env = append(os.Environ(), "VERSION="+singleVersion, "ARCHES="+runtime.GOARCH, "SOURCE_DATE_EPOCH=1700000000")
	cmd.Stderr = os.Stderr
	return dir, cmd.Run()
}

// An upgrade from the single daemon to the two keeps what users have: the history
// with every sample and event, the settings in ttmond.toml, the page's address, and
// the connections of programs that report all the while.
func TestUpgradeFromSingleDaemon(t *testing.T) {
	deb := []string{"dpkg", "--force-confold", "--install"} // the answer by default when dpkg asks about ttmond.toml
	for _, c := range []struct {
		name  string
		steps [][]string // packages that are installed in one command
	}{
		{"deb together", [][]string{{"ttmon", "ttmond", "ttmon-server"}}},
		{"deb server later", [][]string{{"ttmon", "ttmond"}, {"ttmon-server"}}},
		{"deb server first", [][]string{{"ttmon-server"}, {"ttmon", "ttmond"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, err := singleRelease()
			if errors.Is(err, errNoCommit) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			to := release(t, oldRelease) // of today's sources, too
			m := machine.Boot(t)
			compileClient(t, m)
			m.Run(append(deb, copyPackages(t, m, from, singleVersion, "ttmon", "ttmond")...)...)
			m.Run("dpkg-deb", "--extract", copyPackages(t, m, from, singleVersion, "ttmon-sim")[0], "/opt") // without the package fuse3
			m.Run("/opt/usr/bin/ttmon-sim", "--boards", "n300,p150a", "--root", "/srv/boards")
			address := freeAddress(t)
			configureSingle(m, address)
			before := rememberPast(t, m, address)
			load := startLoad(t, m)

			for _, names := range c.steps {
				m.Run(append(deb, copyPackages(t, m, to, oldVersion, names...)...)...)
			}
			for _, unit := range []string{"ttmond.service", "ttmon-server.service"} {
				if state, _ := m.Try("systemctl", "is-active", unit); state != "active" {
					t.Errorf("%s is %s", unit, state)
				}
			}
			if got := m.Run("ttmon", "daemon", "status"); !strings.Contains(got, oldVersion) || strings.Contains(got, singleVersion) {
				t.Errorf("ttmon daemon status says:\n%s", got)
			}
			load.stop()
			before.isKept(t, m)
		})
	}
}

// freeAddress is where the page is to be, by the settings: not at the default, and
// where nothing else listens, since a machine has the network of the test.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// configureSingle gives the single daemon every key that its release had, as some
// administrators do, with three values of their own.
func configureSingle(m *machine.Machine, address string) {
	all := m.Run("ttmond", "--check-config", "--config", "/dev/null")
	for key, value := range map[string]string{"address": address, "root": "/srv/boards", "fine": "2h0m0s"} {
		all = replaceKey(all, key, value)
	}
	m.Write("/etc/ttmon/ttmond.toml", all, 0o644)
	m.Run("systemctl", "restart", "ttmond.service")
}

// replaceKey sets the first key of that name in a TOML text.
func replaceKey(text, key, value string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, key+" = ") {
			lines[i] = fmt.Sprintf("%s = '%s'", key, value)
			break
		}
	}
	return strings.Join(lines, "\n")
}

// past is what a daemon remembers.
type past struct {
	address    string
	start, end time.Time
	samples    map[string]json.RawMessage // by series: times and values from start to end
	events     []json.RawMessage
}

// rememberPast waits until there is a past, and asks for it.
func rememberPast(t *testing.T, m *machine.Machine, address string) past {
	t.Helper()
	p := past{address: address, start: time.Now().Add(-time.Minute).Truncate(time.Second)}
	m.Await("samples and events", func() bool {
		p.end = time.Now()
		samples, err := p.fetchSamples()
		p.samples = samples
		if err == nil {
			p.events, err = p.fetchEvents()
		}
		return err == nil && len(p.samples) >= 2 && len(p.events) > 0
	})
	return p
}

// isKept compares it with what is remembered of the same time now.
func (p past) isKept(t *testing.T, m *machine.Machine) {
	t.Helper()
	var samples map[string]json.RawMessage
	var events []json.RawMessage
	m.Await("the page at the address of ttmond.toml", func() bool {
		var err error
		if samples, err = p.fetchSamples(); err == nil {
			events, err = p.fetchEvents()
		}
		return err == nil && len(samples) > 0
	})
	if diff := cmp.Diff(texts(p.samples), texts(samples)); diff != "" {
		t.Errorf("samples before the upgrade (-), after (+):\n%s", diff)
	}
	if diff := cmp.Diff(ids(t, p.events), ids(t, events)); diff != "" {
		t.Errorf("events before the upgrade (-), after (+):\n%s", diff)
	}
	if got := m.Run("ttmon-server", "--system", "--check-config"); !strings.Contains(got, "2h0m0s") {
		t.Errorf("history.fine of ttmond.toml does not hold:\n%s", got)
	}
	var snapshot struct{ Devices []struct{ Board string } }
	if err := p.fetch("/api/v1/snapshot", &snapshot); err != nil || len(snapshot.Devices) != 2 {
		t.Errorf("root of ttmond.toml does not hold: %+v, %v", snapshot, err)
	}
}

// fetchSamples asks for every sample of a series of each device.
func (p past) fetchSamples() (map[string]json.RawMessage, error) {
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values json.RawMessage
			}
		}
	}
	seconds := p.end.Sub(p.start).Seconds()
	query := fmt.Sprintf("tenstorrent_asic_temperature_celsius[%ds]", int(seconds))
	err := p.fetch("/prometheus/api/v1/query?"+url.Values{"query": {query}, "time": {p.end.UTC().Format(time.RFC3339Nano)}}.Encode(), &answer)
	samples := map[string]json.RawMessage{}
	for _, r := range answer.Data.Result {
		samples[fmt.Sprint(r.Metric)] = r.Values
	}
	return samples, err
}

func (p past) fetchEvents() ([]json.RawMessage, error) {
	var answer struct{ Events []json.RawMessage }
	err := p.fetch("/api/v1/events?"+url.Values{"until": {p.end.UTC().Format(time.RFC3339Nano)}}.Encode(), &answer)
	return answer.Events, err
}

// fetch asks the page's address.
func (p past) fetch(call string, answer any) error {
	// Each time on a connection of its own: the one before may be to a daemon that is gone.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	r, err := client.Get("http://" + p.address + call)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", call, r.Status, b)
	}
	return json.Unmarshal(b, answer)
}

func texts(samples map[string]json.RawMessage) map[string]string {
	list := map[string]string{}
	for name, values := range samples {
		list[name] = string(values)
	}
	return list
}

// ids are what identifies events, whatever fields later releases add.
func ids(t *testing.T, events []json.RawMessage) (list []string) {
	t.Helper()
	for _, e := range events {
		var id struct {
			Seq  uint64
			Time string
			Kind string
		}
		if err := json.Unmarshal(e, &id); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%d %s %s", id.Seq, id.Time, id.Kind))
	}
	return list
}
