package e2e

import (
	"bufio"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// compileApplication builds the C++ program of testdata/ttnn against the library of the
// newest release, and returns its path.
func compileApplication(t *testing.T, library string) string {
	t.Helper()
	f, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	create := ""
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "_ZN2tt8tt_metal11distributed10MeshBuffer6create") {
			create = s.Name
		}
	}
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	program, dir := filepath.Join(t.TempDir(), "app"), filepath.Dir(library)
	if out, err := exec.Command("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", fmt.Sprintf("-DMESH_BUFFER_CREATE=%q", create), filepath.Join(root, "testdata/ttnn/app.cpp"),
		"-o", program, "-L"+dir, "-l:libtt_metal.so", "-Wl,-rpath,"+dir, "-Wl,--allow-shlib-undefined").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestApplicationInCPlusPlus: an unmodified program on tt-metal, without Python and
// without ttnn, is watched as ttnn programs are.
func TestApplicationInCPlusPlus(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	d := startDaemon(t, h, "--config", watchingFromTheStart(t))
	d.mustWatch()
	library, own := ttnn.Library(t, ttnn.Newest), t.TempDir()
	home := filepath.Dir(filepath.Dir(filepath.Dir(library))) // of build/lib
	cmd := h.Command(context.Background(), filepath.Join(bin, "ttmon-sim"), "open", "--", compileApplication(t, library))
	cmd.Env = append(os.Environ(), "TT_METAL_MOCK_CLUSTER_DESC_PATH="+sim.MockDescriptor, "TT_METAL_RUNTIME_ROOT="+home, "TT_METAL_HOME="+home,
		"TT_METAL_LOGS_PATH="+own, "TT_METAL_CACHE="+filepath.Join(own, "cache"), "HOME="+own, "TT_LOGGER_LEVEL=error")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "allocated\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	s := snapshot(t, h, "--daemon", d.api)
	p := processOf(t, s, cmd.Process.Pid)
	if len(p.Devices) != 1 || !p.Devices[0].Memory[model.DRAM].Exactly(64<<20) || p.Devices[0].Source != model.FromUprobe {
		t.Errorf("it holds 64 MiB of DRAM: %+v", p.Devices)
	}
	if p.Type.V != model.TypeTTNN { // whose package its library is of
		t.Errorf("its type is %+v", p.Type)
	}
}
