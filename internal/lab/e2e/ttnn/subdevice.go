package ttnn

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/ttmon/ttmon/lib/libtest"
)

// SubDevices builds the preload into dir with which a job can ask the allocators
// of sub-devices (testdata/ttnn/subdevice.c), and returns its path.
func SubDevices(dir string) (path string, err error) {
	cc, err := libtest.Compiler()
	if err != nil {
		return "", err
	}
	root, err := Repository()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "subdevice.so")
	out, err := exec.Command(cc, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
		filepath.Join(root, "testdata/ttnn/subdevice.c"), "-o", path, "-ldl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the preload for sub-devices: %w\n%s", err, out)
	}
	return path, nil
}
