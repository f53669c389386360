package proc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ttmon/ttmon/internal/hostfs"
)

func TestHostNamespace(t *testing.T) {
	for marker, want := range map[string]uint64{
		"":                          firstNamespace,
		`{"version":1}`:             firstNamespace,
		`{"pid_namespace":42}`:      42,
		`{"pid_namespace":"other"}`: firstNamespace,
		"nonsense":                  firstNamespace,
	} {
		t.Run(marker, func(t *testing.T) {
			dir := t.TempDir()
			if marker != "" {
				if err := os.MkdirAll(filepath.Join(dir, "sys"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, Marker), []byte(marker+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := hostNamespace(hostfs.At(dir)); got != want {
				t.Errorf("marker %q: %d, want %d", marker, got, want)
			}
		})
	}
}
