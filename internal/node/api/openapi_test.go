package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite/atpeak"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/past"
	"github.com/ttmon/ttmon/internal/past/history/changed"
	"github.com/ttmon/ttmon/internal/past/history/held"
	"github.com/ttmon/ttmon/internal/past/page"
)

// TestAnswersAreAsDescribed asks for everything and holds it against its schema.
func TestAnswersAreAsDescribed(t *testing.T) {
	snap := sample.Four()
	snap.Time = time.Now()
	changes := func(_ context.Context, _ int, _ uint64, from, to time.Time, n int) ([]held.Point, time.Time, time.Duration) {
		return []held.Point{{Time: to, Devices: held.By(snap.Processes, snap.Processes[0].PID, 0)}}, from, 0
	}
	log := eventlog.NewRecent(9)
	log.Add(model.Event{Seq: 1, Time: time.Now().UTC(), Kind: "hung", Level: model.Critical, Text: "x"})
	list := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 1 << 30, Align: 64, Smallest: 64}, blocks.FromStart)
	list.Alloc(blocks.Block{Addr: 0, Size: 1 << 20, Asked: 8 << 20, Born: time.Now().UnixNano()})
	process := &blocks.Process{PID: 7, Allocators: []*blocks.Allocator{{Chips: []uint64{5}, Lists: []*blocks.List{list}}}}
	feed := new(api.Feed)
	server, url := overTCP(t, feed, func(o *api.Options) {
		o.Stale = func() ([]model.Leftover, bool) { return nil, true }
		o.Reload = func() ([]string, error) { return nil, nil }
		o.Topology = func(*model.Snapshot) *model.Topology { return &model.Topology{} }
		o.Blocks = func(int) (api.BlocksOf, bool) { return api.BlocksOf{Process: process, UID: os.Geteuid()}, true }
		o.Failures = api.OneFailure{}
		o.Lines = func(id model.ProcessID, _ time.Time) (api.LinesOf, bool) {
			l := atpeak.PeakLine{Line: atpeak.Line{Pool: "dram", File: "model.py", Line: 88}, AtPeak: 1 << 30, Allocs: 1}
			return api.LinesOf{ProcessLines: atpeak.ProcessLines{Schema: atpeak.Schema, Lines: []atpeak.PeakLine{l}}, UID: os.Geteuid()}, id.PID == 7
		}
		memory := past.Memory{
			Events: func() past.EventLog { return log },
			Held:   changes,
			Past:   func(time.Time) (time.Time, []byte, error) { return snap.Time, wire.Append(nil, snap), nil },
			Span:   func() (time.Time, time.Time) { return snap.Time, snap.Time },
			Runs: func(runs.Query) ([]runs.Run, bool, error) {
				d := runs.Device{Power: &runs.Stat{Mean: 1}, PCIe: &runs.PCIe{}, Chips: []runs.Chip{{ID: "1"}}, Pools: map[string]runs.Pool{"dram": {Peak: 1}}}
				return []runs.Run{{ID: 1, Devices: []runs.Device{d}, Neighbours: []runs.Neighbour{{Devices: []int{0}}}, Left: []runs.Left{{}}}}, true, nil
			},
			Alerts: func() any { return map[string]any{"schema": "ttmon.alerts/1", "alerts": []any{}} },
			Changed: func(_ context.Context, from, to time.Time) (*changed.Answer, error) {
				device := 0
				return &changed.Answer{Schema: "ttmon.changed/1", From: from, To: to, Changes: []changed.Change{{Metric: "power.draw", Device: &device, Kind: changed.Moved}, {Kind: changed.Began}}}, nil
			},
			Range: func(_ context.Context, _ string, start, _ time.Time, _ time.Duration) ([]past.Series, error) {
				return []past.Series{{Labels: map[string]string{"pci": "0000:01:00.0", "device": "0"}, Times: []int64{start.UnixMilli()}, Values: []float64{1}}}, nil
			},
		}
		memory.Serve(o)
		page.Moments(memory.Snapshot).Serve(o)
	})
	feed.Publish(snap)
	query := map[string]string{
		"/v1/facts": "?device=" + snap.Devices[0].BusID, "/v1/past": "?at=" + time.Now().UTC().Format(time.RFC3339), "/v1/range": "?metric=memory.used,power.draw&of=most", "/v1/runs/compare": "?run=r1&with=r1", "/v1/lines": "?pid=7&start=1", "/v1/processes/{pid}/map": "?fit=512M",
	}
	session := server.SessionOf(os.Geteuid())
	inPath := strings.NewReplacer("{pid}", "7", "{id}", "f1")
	for _, c := range server.OfferedCalls() {
		if c.Kind != "" || c.Method != "GET" || strings.Contains(c.Path, "/buffers") {
			continue
		}
		status, body := get(t, url, session, inPath.Replace(c.Path)+query[c.Path])
		if status != 200 {
			t.Errorf("%s: status %d: %s", c.Path, status, body)
			continue
		}
		op := c.Operation()["responses"].(map[string]any)["200"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["schema"]
		if err := against(op, body); err != nil {
			t.Errorf("%s: %v\n%.300s", c.Path, err, body)
		}
	}
	if err := against(map[string]any{"type": "object", "required": []string{"openapi", "info", "paths"}}, string(api.OpenAPI(server.OfferedCalls()))); err != nil {
		t.Error(err)
	}
}

// against holds JSON against a schema.
func against(schema any, body string) error {
	b, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("answer.json", doc); err != nil {
		return err
	}
	compiled, err := c.Compile("answer.json")
	if err != nil {
		return err
	}
	answer, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	return compiled.Validate(answer)
}

// The documentation has every call, of ttmond's and of ttmon-server's.
func TestCallsInDocs(t *testing.T) {
	s := api.New(api.Options{})
	for file, list := range map[string][]api.Call{"ttmond.md": s.PresentCalls(), "ttmon-server.md": append(past.Memory{}.Calls(s), page.Moments(nil).Calls(s)...)} {
		t.Run(file, func(t *testing.T) {
			table := "| call | parameters | answer |\n|---|---|---|\n"
			for _, c := range list {
				var params []string
				for _, p := range c.Params {
					if !p.InPath {
						params = append(params, fmt.Sprintf("`%s` %s", p.Name, p.Help))
					}
				}
				name := strings.TrimPrefix(c.Method+" "+c.Path, "GET ")
				table += fmt.Sprintf("| `%s` | %s | %s |\n", name, strings.ReplaceAll(strings.Join(params, "; "), "|", "\\|"), c.Help)
			}
			golden.CheckTable(t, "../../../docs/"+file, table)
		})
	}
}
