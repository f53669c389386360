package api

import (
	"encoding"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/history/changed"
	"github.com/ttmon/ttmon/internal/jobs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/runs/compare"
	"github.com/ttmon/ttmon/internal/view/pagejson"
	"github.com/ttmon/ttmon/internal/view/why"
)

// This file describes the API for programs: OpenAPI 3.1, made from the types
// that are sent. A test holds every answer against it, and the calls against the
// list.

// described is one call.
type described struct {
	method, path, help string
	params             []param
	answer             any    // a value of the type that is sent; nil: see kind
	kind               string // media type; empty: application/json
	part               string // "memory": only where there is a history
}

type param struct {
	name, help string
	inPath     bool
	required   bool
}

// schemaOnly is an answer whose contract is described elsewhere.
type schemaOnly struct {
	Schema string `json:"schema"`
}

var (
	pidParam      = param{name: "pid", help: "process id on this host", inPath: true, required: true}
	atParam       = param{name: "at", help: "a moment, RFC 3339; the snapshot that held then"}
	blocksAtParam = param{name: "at", help: "a moment, RFC 3339; only where a recording is served"}
	failureParam  = param{name: "id", help: "of /v1/failures, or last", inPath: true, required: true}
	startParam    = param{name: "start", help: "RFC 3339; an hour before end where it is left out"}
	endParam      = param{name: "end", help: "RFC 3339; now where it is left out"}
)

// Answers that are put together in place.
type (
	rangeAnswer struct {
		Schema string        `json:"schema"`
		Start  time.Time     `json:"start"`
		End    time.Time     `json:"end"`
		Step   float64       `json:"step_s"`
		Times  []float64     `json:"times"`
		Away   []bool        `json:"away,omitempty"` // nothing was sampled then
		Series []rangeSeries `json:"series"`
	}
	metricsAnswer struct {
		Schema  string      `json:"schema"`
		Metrics []chartable `json:"metrics"`
	}
	eventsAnswer struct {
		Schema string        `json:"schema"`
		Events []model.Event `json:"events"`
		Last   uint64        `json:"last"`
	}
	spanAnswer struct {
		Schema string     `json:"schema"`
		Oldest *time.Time `json:"oldest"`
		Newest *time.Time `json:"newest"`
	}
	mapAnswer struct {
		Schema string    `json:"schema"`
		PID    int       `json:"pid"`
		Pools  []mapPool `json:"pools"`
		Doubts []string  `json:"doubts"`
		Fits   []string  `json:"fits"`
		Sites  []mapSite `json:"sites"`
	}
	meAnswer struct {
		Schema string  `json:"schema"`
		UID    *int    `json:"uid"`
		User   *string `json:"user"`
		Sees   string  `json:"sees"`
		Hiding int     `json:"hiding"` // as hidepid of /proc: 0 shows every process
		Text   string  `json:"text"`
	}
	ticketAnswer struct {
		Schema  string  `json:"schema"`
		Ticket  string  `json:"ticket"`
		Address string  `json:"address"`
		Expires float64 `json:"expires_s"`
	}
	sessionAnswer struct {
		Schema  string `json:"schema"`
		Session string `json:"session"`
	}
	versionAnswer struct {
		Name      string   `json:"name"`
		Version   string   `json:"version"`
		API       []string `json:"api"`
		Calls     []string `json:"calls"`
		Recording bool     `json:"recording"`
		Page      string   `json:"page"` // its address; empty: it is not served here
	}
	alertsAnswer struct {
		Schema string           `json:"schema"`
		Alerts []map[string]any `json:"alerts"`
	}
	processesAnswer struct {
		Schema    string     `json:"schema"`
		Processes []reporter `json:"processes"`
	}
)

const text, events = "text/plain", "text/event-stream"

func calls() []described {
	return []described{
		{method: "GET", path: "/v1/snapshot", help: "the latest snapshot: docs/snapshot.schema.json", answer: schemaOnly{}},
		{method: "GET", path: "/v1/watch", help: "snapshots as they are made, as server-sent events", kind: events, params: []param{
			{name: "interval", help: "no oftener than this: 5s"}, {name: "said", help: "1: before each snapshot an event said, with the snapshot in words"},
		}},
		{method: "GET", path: "/v1/stream", part: "stream", kind: "application/x-ttmon-stream", help: "for ttmon-server: numbered events after the last that it has, and snapshots, as frames of a kind and a length", params: []param{
			{name: "log", help: "the log that after counts in"}, {name: "after", help: "number of the last event that the follower has"}, {name: "only", help: "events or snapshots"},
		}},
		{method: "GET", path: "/v1/said", help: "a snapshot in words, as ttmon says it", params: []param{atParam}, answer: pagejson.Snapshot{}},
		{method: "GET", path: "/v1/mesh", help: "which Ethernet links of the chips are up, and what is cut off", params: []param{atParam}, answer: pagejson.Mesh{}},
		{method: "GET", path: "/v1/facts", help: "all that is known of a device, in sections, as smi -q has it", params: []param{{name: "device", help: "bus id", required: true}, atParam}, answer: pagejson.Facts{}},
		{method: "GET", path: "/v1/words", help: "the words for marks, missing values, sources and pools", answer: schemaOnly{}},
		{method: "GET", path: "/v1/metrics", help: "what /v1/range can be asked for", answer: metricsAnswer{}},
		{method: "GET", path: "/v1/range", part: "memory", help: "metrics of devices over time, on common times", answer: rangeAnswer{}, params: []param{
			{name: "metric", help: "names of /v1/metrics, by commas; at most 8", required: true},
			{name: "device", help: "bus id; all devices where it is left out"},
			startParam, endParam,
			{name: "step", help: "15s; as many as a chart has where it is left out"},
			{name: "of", help: "end: the value at the end of each step; most: its most"},
		}},
		{method: "GET", path: "/v1/changed", part: "memory", help: "the series of the host that changed in a stretch of time, by how far they moved in their usual variation", answer: changed.Answer{}, params: []param{startParam, endParam}},
		{method: "GET", path: "/v1/events", part: "memory", help: "what happened", answer: eventsAnswer{}, params: []param{
			{name: "after", help: "only events with a higher number"},
			{name: "since", help: "RFC 3339"},
			{name: "until", help: "RFC 3339"},
			{name: "device", help: "bus id"},
			{name: "kind", help: "may be given several times"},
			{name: "limit", help: "the newest so many"},
			{name: "follow", help: "1: go on, as server-sent events"},
		}},
		{method: "GET", path: "/v1/alerts", part: "memory", help: "alerts that are pending or fire", answer: alertsAnswer{}},
		{method: "GET", path: "/v1/past", part: "memory", help: "the snapshot of another time", params: []param{atParam}, answer: schemaOnly{}},
		{method: "GET", path: "/v1/past/span", part: "memory", help: "how far back /v1/past reaches", answer: spanAnswer{}},
		{method: "GET", path: "/v1/topology", help: "PCIe distances and Ethernet links", answer: schemaOnly{}},
		{method: "GET", path: "/v1/processes", help: "who reports allocations, and how much", answer: processesAnswer{}},
		{method: "GET", path: "/v1/processes/{pid}/buffers", help: "live buffers that a process reported, largest first", answer: schemaOnly{}, params: []param{
			pidParam,
			{name: "limit", help: "so many"},
			{name: "device", help: "in the process's own numbering"},
			{name: "pool", help: "dram, l1, …"},
			{name: "sort", help: "size or age"},
			{name: "start", help: "start_ticks of the process that is meant"},
		}},
		{method: "GET", path: "/v1/processes/{pid}/blocks", help: "its allocators with every block; for its user and root", params: []param{pidParam, blocksAtParam}, answer: schemaOnly{}},
		{method: "GET", path: "/v1/allocations", kind: "application/x-ndjson", help: "every allocation and free of processes that are watched through the kernel, as it happens, line by line: what a process holds (state), then its numbered changes, each [kind, ns after time, list, address, bytes of each bank, bytes asked for] with kind 1 taken, 2 given back, 3 list cleared, 4 list closed, 5 list defined, 6 events lost in all, 7 watched late, 8 ended; up_to: all that happened before was told. Who is too slow gets a state with how many were missed. For the users of the processes and root", params: []param{
			{name: "pid", help: "of this process only; may be given again"},
		}},
		{method: "GET", path: "/v1/programs", kind: "application/x-ndjson", help: "every program that runs on the chips of processes that are watched through the kernel, line by line: those of a process on a chip, numbered from n on, each [ns after the end of the one before, the first after time, length in ns by the chip's clock, name in names]. from is the number that the client's first program would have had: the numbers say how many are missing, and lost is how many of the process were not read on any chip; up_to: all that was reported before was sent. For the users of the processes and root", params: []param{
			{name: "pid", help: "of this process only; may be given again"},
		}},
		{method: "GET", path: "/v1/lines", part: "lines", help: "the lines of code of a process that held the most device memory when it held the most of each pool, also after it has exited, where libttmon knew its call sites; for its user and root", answer: runs.ProcessLines{}, params: []param{
			{name: "pid", help: "of the process", required: true},
			{name: "start", help: "its start_ticks", required: true},
			{name: "since", help: "when it began: pids and start_ticks repeat from boot to boot"},
		}},
		{method: "GET", path: "/v1/failures", part: "failures", help: "the last allocations that failed, of the caller's programs; root sees all", answer: schemaOnly{}},
		{method: "GET", path: "/v1/failures/{id}", part: "failures", help: "one of them: the request, the allocator as it was, why it failed and what would have made it fit; for its user and root", answer: schemaOnly{}, params: []param{
			failureParam,
			{name: "pid", help: "with last: of this process"},
		}},
		{method: "GET", path: "/v1/failures/{id}/page", part: "failures", help: "one of them as the page shows it: in sentences, the bank as it is drawn, and who held it; for its user and root", answer: why.Page{}, params: []param{failureParam}},
		{method: "GET", path: "/v1/failures/{id}/file", part: "failures", kind: "text/html", help: "one of them as an HTML file of its own, to be saved and sent; for its user and root", params: []param{failureParam}},
		{method: "GET", path: "/v1/processes/{pid}/map", help: "its banks as they are drawn, call sites, and what would fit; for its user and root", answer: mapAnswer{}, params: []param{
			pidParam, blocksAtParam,
			{name: "fit", help: "a size: 512M"},
			{name: "shape", help: "of a tensor: 1,1,4096,4096"},
			{name: "dtype", help: "of its elements"},
			{name: "shard", help: "the part of each core, or over how many it is cut: 64x512, height:8, width:8, block:4x4"},
			{name: "layout", help: "tile or row_major"},
			{name: "pool", help: "dram, l1, l1_small or trace"},
		}},
		{method: "GET", path: "/v1/processes/{pid}/history", part: "memory", help: "what a process held over time: every change from every_change_since on, or the most of each step where step_s is above 0; before that what the snapshots have that are kept", answer: pastAnswer{}, params: []param{
			pidParam, startParam, endParam, {name: "points", help: "at most about so many, 2 to 1000"}, {name: "start_ticks", help: "of the process that is meant"},
		}},
		{method: "GET", path: "/v1/jobs", part: "memory", help: "Slurm jobs and pods: what they took of boards, how their runs ended, and what they left behind; a job is listed if one of its runs is asked for", answer: jobs.Answer{}, params: []param{
			{name: "id", help: "or name of a job; may be given again"},
			{name: "uid", help: "of their user"},
			{name: "since", help: "those that ran at this time or later"},
			{name: "until", help: "those that began before this time"},
			{name: "device", help: "that they used: index or bus id"},
			{name: "command", help: "exactly this command line"},
			{name: "text", help: "in the command, the user or the job"},
			{name: "leaked", help: "true: only those that left memory behind"},
			{name: "failed", help: "true: only those that are known to have ended badly"},
			{name: "running", help: "true or false: only those that have not, or have, ended"},
			{name: "limit", help: "the newest so many"},
		}},
		{method: "GET", path: "/v1/runs", part: "memory", help: "the programs that used devices: who, when, how they ended, what they took", answer: runs.Answer{}, params: []param{
			{name: "id", help: "of a run (r318), a process or a job; may be given again"},
			{name: "jobs", help: "true: only those of a job"},
			{name: "uid", help: "of their user"},
			{name: "since", help: "those that ran at this time or later"},
			{name: "until", help: "those that began before this time"},
			{name: "device", help: "that they used: index or bus id"},
			{name: "job", help: "that they belong to"},
			{name: "command", help: "exactly this command line"},
			{name: "text", help: "in the command, the user or the job"},
			{name: "leaked", help: "true: only those that left memory behind"},
			{name: "failed", help: "true: only those that are known to have ended badly"},
			{name: "running", help: "true or false: only those that have not, or have, ended"},
			{name: "limit", help: "the newest so many"},
		}},
		{method: "GET", path: "/v1/runs/compare", part: "memory", help: "how a run differs from another, or from the median of the last five of the same command", answer: compare.Comparison{}, params: []param{
			{name: "run", help: "the run", required: true},
			{name: "with", help: "the run that it is compared with; without: the usual"},
		}},
		{method: "GET", path: "/v1/leaks", help: "what dead processes had not freed", answer: schemaOnly{}},
		{method: "GET", path: "/v1/stale", help: "what they left in tt-metal's own accounts", answer: schemaOnly{}},
		{method: "GET", path: "/v1/dump", help: "everything live, for people", kind: text, params: []param{{name: "kind", help: "remaining or kernels"}}},
		{method: "GET", path: "/v1/dumps", help: "the dumps that the caller's clients asked for", answer: schemaOnly{}},
		{method: "GET", path: "/v1/health", help: "how the daemon is doing; status 503 when something is late", answer: Health{}},
		{method: "GET", path: "/v1/version", help: "which calls there are", answer: versionAnswer{}},
		{method: "GET", path: "/v1/me", help: "who the caller is", answer: meAnswer{}},
		{method: "GET", path: "/v1/openapi.json", help: "this description", answer: map[string]any{}},
		{method: "POST", path: "/v1/ticket", help: "a ticket for the page; on the Unix socket only", answer: ticketAnswer{}},
		{method: "POST", path: "/v1/session", help: `a session for a ticket, {"ticket": "…"}; its secret goes into the header ` + SessionHeader, answer: sessionAnswer{}},
		{method: "POST", path: "/v1/reload", help: "read the configuration again; on the Unix socket, for root", answer: schemaOnly{}},
	}
}

// openAPI is the description, made once.
var openAPI = sync.OnceValue(func() []byte {
	paths := map[string]map[string]any{}
	for _, c := range calls() {
		if paths["/api"+c.path] == nil {
			paths["/api"+c.path] = map[string]any{}
		}
		paths["/api"+c.path][strings.ToLower(c.method)] = c.operation()
	}
	b, err := json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "ttmond", "version": "1",
			"description": "Read-only, but for POST. Times are RFC 3339 in UTC, sizes in bytes, unknown is null. Errors are {\"error\": \"…\"}. On the Unix socket the same calls are below / instead of /api.",
		},
		"paths": paths,
	}, "", " ")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append(b, '\n')
})

func (c *described) operation() map[string]any {
	params := []any{}
	for _, p := range c.params {
		in := "query"
		if p.inPath {
			in = "path"
		}
		params = append(params, map[string]any{"name": p.name, "in": in, "required": p.required, "description": p.help, "schema": map[string]any{"type": "string"}})
	}
	kind, schema := "application/json", any(map[string]any{"type": "string"})
	if c.kind != "" {
		kind = c.kind
	} else {
		schema = schemaOf(reflect.TypeOf(c.answer))
	}
	failed := map[string]any{"description": "why not", "content": map[string]any{"application/json": map[string]any{
		"schema": map[string]any{"type": "object", "required": []string{"error"}, "properties": map[string]any{"error": map[string]any{"type": "string"}}},
	}}}
	return map[string]any{
		"summary": c.help, "parameters": params,
		"responses": map[string]any{
			"200":     map[string]any{"description": "the answer", "content": map[string]any{kind: map[string]any{"schema": schema}}},
			"default": failed,
		},
	}
}

// schemaOf is the JSON schema of what encoding/json makes of a type.
func schemaOf(t reflect.Type) any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	case t.Kind() == reflect.Pointer:
		return map[string]any{"anyOf": []any{schemaOf(t.Elem()), map[string]any{"type": "null"}}}
	}
	switch t.Kind() {
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		for _, f := range reflect.VisibleFields(t) {
			name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || !f.IsExported() || f.Anonymous {
				continue
			}
			if name == "" {
				name = f.Name
			}
			properties[name] = schemaOf(f.Type)
			if !strings.Contains(rest, "omit") {
				required = append(required, name)
			}
		}
		return map[string]any{"type": "object", "properties": properties, "required": required}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": []string{"array", "null"}, "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": schemaOf(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Interface:
		return map[string]any{}
	default:
		return map[string]any{"type": "integer"}
	}
}

func (s *Server) openapi(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI())
}
