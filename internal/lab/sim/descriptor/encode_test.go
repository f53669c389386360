package descriptor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/ttmon/ttmon/internal/source/umd"
)

// parseSample reads the descriptor of a real host.
func parseSample(t *testing.T, name string) *umd.Descriptor {
	t.Helper()
	text, err := os.ReadFile("../../../source/umd/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := umd.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// TestWrittenDescriptorsReadAlike: descriptors of real hosts, written by us,
// read as before, and a YAML library reads them too.
func TestWrittenDescriptorsReadAlike(t *testing.T) {
	samples, err := filepath.Glob("../../../source/umd/testdata/*.yaml")
	if err != nil || len(samples) < 9 {
		t.Fatalf("samples: %v, %v", samples, err)
	}
	for _, path := range samples {
		d := parseSample(t, filepath.Base(path))
		src := AppendYAML(nil, d)
		again, err := umd.Parse(src)
		if err != nil {
			t.Errorf("%s: %v\n%s", path, err, src)
			continue
		}
		if diff := cmp.Diff(d, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
		var tree map[string]any
		if err := yaml.Unmarshal(src, &tree); err != nil || tree["arch"] == nil || tree["chips_with_mmio"] == nil {
			t.Errorf("%s: a YAML library does not read it: %v\n%s", path, err, src)
		}
	}
}
