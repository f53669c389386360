package page

import (
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/view/pagejson"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/why"
)

// Answers that are put together in place.
type (
	metricsAnswer struct {
		Schema  string      `json:"schema"`
		Metrics []chartable `json:"metrics"`
	}
	mapAnswer struct {
		Schema string    `json:"schema"`
		PID    int       `json:"pid"`
		Pools  []mapPool `json:"pools"`
		Doubts []string  `json:"doubts"`
		Fits   []string  `json:"fits"`
		Sites  []mapSite `json:"sites"`
	}
)

// Calls are those that say and draw what other calls answer as data.
func (m Moments) Calls(server *api.Server) []api.Call {
	s := calls{server, m}
	return []api.Call{
		{Method: "GET", Path: "/v1/said", Serve: s.said, Help: "a snapshot in words, as ttmon says it", Params: []api.Param{api.AtParam}, Answer: pagejson.Snapshot{}},
		{Method: "GET", Path: "/v1/mesh", Serve: s.mesh, Help: "which Ethernet links of the chips are up, and what is cut off", Params: []api.Param{api.AtParam}, Answer: pagejson.Mesh{}},
		{Method: "GET", Path: "/v1/facts", Serve: s.facts, Help: "all that is known of a device, in sections, as smi -q has it, or of a process", Params: []api.Param{{Name: "device", Help: "bus id"}, {Name: "pid", Help: "of the process, instead of a device"}, api.AtParam}, Answer: sheet.Sheet{}},
		{Method: "GET", Path: "/v1/words", Serve: s.words, Cheap: true, Help: "the words for marks, missing values, sources and pools", Answer: api.SchemaOnly{}},
		{Method: "GET", Path: "/v1/metrics", Serve: s.metrics, Cheap: true, Help: "what /v1/range can be asked for", Answer: metricsAnswer{}},
		{Method: "GET", Path: "/v1/topology/links", Serve: api.Offered(s.Answers("/v1/topology"), s.links), Help: "the Ethernet links as the page shows them: a row for each, the worst first", Answer: sheet.Table{}},
		{Method: "GET", Path: "/v1/failures/{id}/page", Serve: api.Offered(s.Answers("/v1/failures/{id}"), s.failurePage), Help: "one of them as the page shows it: in sentences, the bank as it is drawn, and who held it; for its user and root", Answer: why.Page{}, Params: []api.Param{api.FailureParam}},
		{Method: "GET", Path: "/v1/failures/{id}/file", Serve: api.Offered(s.Answers("/v1/failures/{id}"), s.failureFile), Kind: "text/html", Help: "one of them as an HTML file of its own, to be saved and sent; for its user and root", Params: []api.Param{api.FailureParam}},
		{Method: "GET", Path: "/v1/processes/{pid}/map", Serve: s.mapOf, Help: "its banks as they are drawn, call sites, and what would fit; for its user and root", Answer: mapAnswer{}, Params: []api.Param{
			api.PIDParam, api.BlocksAtParam,
			{Name: "fit", Help: "a size: 512M"},
			{Name: "shape", Help: "of a tensor: 1,1,4096,4096"},
			{Name: "dtype", Help: "of its elements"},
			{Name: "shard", Help: "the part of each core, or over how many it is cut: 64x512, height:8, width:8, block:4x4"},
			{Name: "layout", Help: "tile or row_major"},
			{Name: "pool", Help: "dram, l1, l1_small or trace"},
		}},
	}
}
