package metaltrace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
)

// A graph report is an SQLite database. A reader of those in Go weighs more
// than all of ttmon, and where ttnn is there is Python, which has one: it is
// asked, in a process of its own, and only to read.
const graphScript = `
import json, sqlite3, sys
db = sqlite3.connect("file:" + sys.argv[1].replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=ro&immutable=1", uri=True)
columns = {r[1] for r in db.execute("PRAGMA table_info(operations)")}
need = {"operation_id", "name", "duration"}
if not need <= columns:
    print(json.dumps({"error": "the table operations has no column " + ", ".join(sorted(need - columns)) if columns else "there is no table operations"}))
    sys.exit(0)
buffers = {}
if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'buffers'").fetchone():
    for op, n, size in db.execute("SELECT operation_id, count(*), sum(max_size_per_bank) FROM buffers GROUP BY operation_id"):
        buffers[op] = (n, size)
ops = []
for op, name, duration in db.execute("SELECT operation_id, name, duration FROM operations ORDER BY operation_id LIMIT 2000001"):
    n, size = buffers.get(op, (None, None))
    ops.append([op, str(name), duration, n, size])
print(json.dumps({"ops": ops}))
`

// graphOp is an op: number, name, seconds, buffers, bytes of each bank.
type graphOp struct {
	ID      int64
	Name    string
	Seconds *float64
	Buffers *int64
	Bytes   *int64
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *graphOp) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&o.ID, &o.Name, &o.Seconds, &o.Buffers, &o.Bytes})
}

// readGraph reads a graph report. It knows how long each op took, not when: ops
// stand one behind the other.
func readGraph(ctx context.Context, path string) (*Trace, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, fmt.Errorf("%s: reading a graph report takes python3, which is not there", path)
	}
	cmd := exec.CommandContext(ctx, python, "-I", "-c", graphScript, path)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		last := strings.TrimSpace(complaints.String())
		return nil, fmt.Errorf("%s: the graph report cannot be read: %s", path, last[strings.LastIndexByte(last, '\n')+1:])
	}
	var answer struct {
		Error string
		Ops   []graphOp
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, fmt.Errorf("%s: the graph report cannot be read: %w", path, err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s: the graph report is of another version of ttnn", path, answer.Error)
	}
	t := &Trace{Kind: GraphReport}
	at := int64(0)
	for _, op := range answer.Ops {
		if op.Seconds == nil || *op.Seconds < 0 || *op.Seconds > 1e6 {
			t.Dropped++ // it did not come to its end
			continue
		}
		s := Slice{Clock: "ops", Group: "graph report", Track: "ops, one behind the other", Name: op.Name, From: at, To: at + int64(*op.Seconds*1e9)}
		s.Args = []string{"operation", fmt.Sprint(op.ID)}
		if op.Buffers != nil && op.Bytes != nil {
			s.Args = append(s.Args, "buffers", fmt.Sprint(*op.Buffers), "bytes of each bank", fmt.Sprint(*op.Bytes))
		}
		at = s.To
		t.Slices = append(t.Slices, s)
	}
	if len(t.Slices) > maxSlices {
		return nil, fmt.Errorf("%s: more than %d ops", path, maxSlices)
	}
	return t, nil
}
