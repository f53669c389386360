package doctor

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
	checks "github.com/ttmon/ttmon/internal/view/doctor"
)

// hostWithSecrets is a host on which everything private says so.
func hostWithSecrets() (*checks.Subject, []string) {
	s := sample.Troubles()
	s.Host.Name = "secret-host"
	p := sample.Serve(4321, sample.Use(&s.Devices[0], 1<<30, 1<<20))
	p.UID, p.User = model.Value(54321), model.Value("secret-user")
	p.Name, p.Cmdline = model.Value("secret-name"), model.Value("secret-cmd --key=secret-key")
	p.Container = model.Container{Runtime: "docker", ID: "secret-id", Pod: "secret-pod", PodName: "secret-pod", Namespace: "secret-space"}
	p.SlurmJob, p.SlurmStep, p.SystemdUnit = "secret-job", "secret-step", "secret-unit"
	p.Devices[0].Doubts = []model.Doubt{
		{Kind: model.SlotAdopted, Name: "secret-dead"},
		{Kind: model.ProcessUnreadable, PID: 4321, Detail: "secret-detail"},
		{Kind: model.ProcessDenied, PID: 4321, UID: 54321},
	}
	s.Processes = append(s.Processes, p)
	s.StaleSlots = append(s.StaleSlots, model.StaleSlot{Region: "/dev/shm/tt_device_99887766554433_memory", ChipID: 99887766554433, Device: 0, PID: 7, Name: "secret-ghost"})
	s.StaleSlots[len(s.StaleSlots)-1].Bytes[model.DRAM] = model.ExactBytes(1 << 20)
	s.Alerts = append(s.Alerts, model.Alert{Name: "ChipHung", Severity: "critical", Summary: "secret-summary"})
	s.Devices[0].Serial, s.Devices[0].ASICID = model.Value("010001861190ABCD"), model.Value("AABBCCDD11223344")
	d := checks.DaemonState{Path: "/run/user/54321/secret.sock", Why: "secret-why", Unwatched: []string{"/home/secret-home/lib.so is not watched"}}
	return &checks.Subject{Snapshot: s, Setup: &model.Setup{}, Daemon: d},
		[]string{"secret", "54321", "99887766554433", "010001861190ABCD", "AABBCCDD11223344"}
}

// unpack reads a bundle.
func unpack(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(h.Name + "\n" + string(b))
	}
}

// TestBundle: nothing private is in a bundle, unless it was asked for.
func TestBundle(t *testing.T) {
	for _, private := range []bool{false, true} {
		subject, secrets := hostWithSecrets()
		name := filepath.Join(t.TempDir(), "b.tar.gz")
		if err := Bundle(name, subject, private); err != nil {
			t.Fatal(err)
		}
		text := unpack(t, name)
		for _, s := range secrets {
			if at := strings.Index(text, s); (at >= 0) != private {
				t.Errorf("private %t: %q at %d: …%s…", private, s, at, text[max(0, at-80):min(len(text), max(0, at)+80)])
			}
		}
		for _, name := range []string{"README.txt", "doctor.txt", "doctor.json", "snapshot.json", "setup.txt"} {
			if !strings.Contains(text, "ttmon-bundle/"+name) {
				t.Errorf("%s is missing", name)
			}
		}
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st.Mode(), err)
		}
		if err := Bundle(name, subject, private); err == nil {
			t.Error("a file that is there was overwritten")
		}
	}
}

// TestBundleFollowsNoLink: who puts a link in its place has nothing written.
func TestBundleFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "target"), filepath.Join(dir, "b.tar.gz")); err != nil {
		t.Fatal(err)
	}
	subject, _ := hostWithSecrets()
	if err := Bundle(filepath.Join(dir, "b.tar.gz"), subject, false); err == nil {
		t.Error("a link was followed")
	}
	if _, err := os.Stat(filepath.Join(dir, "target")); err == nil {
		t.Error("its target was made")
	}
}
