package wire

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
)

const schemaFile = "../../../docs/snapshot.schema.json"

// describer is the third archive: it notes what the walk visits, as a JSON
// Schema (draft 2020-12).
type describer struct {
	stack    []*schema
	cur      *schema
	nullable bool
}

type schema struct {
	Type       any                `json:"type,omitempty"`
	Format     string             `json:"format,omitempty"`
	Pattern    string             `json:"pattern,omitempty"`
	Const      string             `json:"const,omitempty"`
	Enum       []string           `json:"enum,omitempty"`
	Properties map[string]*schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	Items      *schema            `json:"items,omitempty"`
	Values     *schema            `json:"additionalProperties,omitempty"`
}

func (d *describer) reads() bool { return true } // so that rare members are visited too

func (d *describer) member(key string, nullable bool) {
	top := d.stack[len(d.stack)-1]
	d.cur, d.nullable = new(schema), nullable
	top.Properties[key] = d.cur
	if !slices.Contains([]string{"occupied_bytes", "occupied_bound", "inferred_bytes", "inferred_bound", "free_bytes", "largest_free_bytes", "core_largest_free_least_bytes", "core_largest_free_most_bytes", "remote_temperature_c", "remote_power_w"}, key) {
		top.Required = append(top.Required, key)
	}
}

func (d *describer) key(key string) bool { d.member(key, false); return true }
func (d *describer) null(key string, _ bool) bool {
	d.member(key, true)
	if key == "index" { // the walk visits no value of a device that is not here
		d.is("integer")
		return true
	}
	return false
}
func (d *describer) reading(key string, _ status, _ bool) bool { d.member(key, true); return true }

func (d *describer) maybe(key string, _ bool) bool {
	d.member(key, false)
	top := d.stack[len(d.stack)-1]
	top.Required = top.Required[:len(top.Required)-1]
	return true
}

func (d *describer) figure(key, boundKey string, _ *model.Bytes) {
	d.member(key, true)
	d.is("integer")
	d.member(boundKey, true)
	d.is("string").Pattern = "^(exact|at_least|unsure)$"
}

func (d *describer) is(kind string) *schema {
	d.cur.Type = kind
	if d.nullable {
		d.cur.Type = []string{kind, "null"}
	}
	d.nullable = false
	return d.cur
}

func (d *describer) begin() {
	if d.cur == nil {
		d.cur = new(schema)
	}
	s := d.is("object")
	s.Properties = map[string]*schema{}
	d.stack = append(d.stack, s)
}

func (d *describer) close() {
	if len(d.stack) > 1 {
		d.stack = d.stack[:len(d.stack)-1]
	}
}

// list visits exactly one item, whatever the sample holds.
func (d *describer) list(int) int {
	s := d.is("array")
	s.Items = new(schema)
	d.stack = append(d.stack, s)
	return 1
}

func (d *describer) item()    { d.cur, d.nullable = d.stack[len(d.stack)-1].Items, false }
func (d *describer) endList() { d.close() }
func (d *describer) scope()   {}
func (d *describer) endScope() {
	d.key("missing")
	d.is("object").Values = &schema{Type: "string"}
	d.key("nominal")
	d.is("array").Items = &schema{Type: "string"}
}

func (d *describer) value(v any) {
	switch v.(type) {
	case *float64:
		d.is("number")
	case *int, *uint64, *uint32:
		d.is("integer")
	case *bool:
		d.is("boolean")
	case *string, *model.Bound:
		d.is("string")
	case *decimal:
		d.is("string").Pattern = "^[0-9]+$"
	case *hex:
		d.is("string").Pattern = "^0x[0-9a-f]{4}$"
	case *time.Time:
		d.is("string").Format = "date-time"
	default:
		panic(fmt.Sprintf("a value of type %T", v))
	}
}

func describe() []byte {
	var d describer
	snapshot(&d, new(model.Snapshot))
	root := d.stack[0]
	p := root.Properties
	p["schema"].Const = Schema
	enum := func(s *schema, values ...string) { s.Enum = values }
	enum(p["source"], string(model.Direct), string(model.Daemon))
	device, process := p["devices"].Items.Properties, p["processes"].Items.Properties
	enum(device["arch"], string(model.Wormhole), string(model.Blackhole), string(model.UnknownArch))
	enum(device["state"], string(model.StateOK), string(model.StateResetting), string(model.StateUnknown), string(model.StateHung), string(model.StateLost))
	enum(process["state"], string(model.Running), string(model.Exited), string(model.Hidden))
	for _, m := range []map[string]*schema{
		device["memory"].Properties, device["chips"].Items.Properties["memory"].Properties,
		process["devices"].Items.Properties, p["unmatched_chips"].Items.Properties["memory"].Properties,
	} {
		enum(m["tracking"], string(model.TrackOK), string(model.TrackPartial), string(model.TrackDenied), string(model.TrackAbsent), string(model.TrackUnknown))
	}
	out, err := json.MarshalIndent(struct {
		Schema      string `json:"$schema"`
		ID          string `json:"$id"`
		Title       string `json:"title"`
		Description string `json:"description"`
		*schema
	}{
		"https://json-schema.org/draft/2020-12/schema", Schema, "A snapshot of a Tenstorrent host",
		"What ttmon smi --json prints. Fields are only ever added; unknown is null, with the reason in \"missing\".", root,
	}, "", "  ")
	if err != nil {
		panic(err)
	}
	return append(out, '\n')
}

func TestSchemaFile(t *testing.T) {
	golden.Check(t, schemaFile, describe())
}

// What is printed keeps to the schema file, member for member.
func TestOutputKeepsToTheSchema(t *testing.T) {
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*model.Snapshot{sample.NoDriver(), sample.None(), sample.One(), sample.Four(), sample.Galaxy(), sample.Troubles()} {
		var v any
		if err := json.Unmarshal(Append(nil, s), &v); err != nil {
			t.Fatal(err)
		}
		for _, e := range check(root, v, "$") {
			t.Error(e)
		}
	}
}

// The checker itself must be able to say no.
func TestCheckerRefuses(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(describe(), &root); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(map[string]any){
		"a number as a string": func(d map[string]any) { d["power_w"] = "61" },
		"a member is gone":     func(d map[string]any) { delete(d, "bus_id") },
		"a member too many":    func(d map[string]any) { d["utilization"] = 7.0 },
		"a null for a must":    func(d map[string]any) { d["index"] = nil },
		"an unknown state":     func(d map[string]any) { d["state"] = "sleepy" },
		"half an index":        func(d map[string]any) { d["index"] = 0.5 },
	} {
		t.Run(name, func(t *testing.T) {
			var v map[string]any
			if err := json.Unmarshal(Append(nil, sample.One()), &v); err != nil {
				t.Fatal(err)
			}
			spoil(v["devices"].([]any)[0].(map[string]any))
			if len(check(root, v, "$")) == 0 {
				t.Errorf("%s is not noticed", name)
			}
		})
	}
}

// check is the small part of JSON Schema that the file uses; members that the
// schema does not name are errors, since the two are made from one walk.
func check(s map[string]any, v any, path string) (errs []string) {
	fail := func(format string, args ...any) { errs = append(errs, path+": "+fmt.Sprintf(format, args...)) }
	kind := map[bool]string{}
	switch v := v.(type) {
	case nil:
		kind[true] = "null"
	case bool:
		kind[true] = "boolean"
	case float64:
		kind[true] = "number"
		if v == float64(int64(v)) {
			kind[false] = "integer"
		}
	case string:
		kind[true] = "string"
		if c, ok := s["const"]; ok && c != v {
			fail("%q, want %q", v, c)
		}
		if e, ok := s["enum"].([]any); ok && !slices.Contains(e, any(v)) {
			fail("%q is none of %v", v, e)
		}
	case []any:
		kind[true] = "array"
		for i, item := range v {
			errs = append(errs, check(s["items"].(map[string]any), item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case map[string]any:
		kind[true] = "object"
		errs = append(errs, checkObject(s, v, path)...)
	}
	types, ok := s["type"].([]any)
	if !ok {
		types = []any{s["type"]}
	}
	if !slices.Contains(types, any(kind[true])) && !slices.Contains(types, any(kind[false])) {
		fail("is %v, want %v", kind, types)
	}
	return errs
}

func checkObject(s, v map[string]any, path string) (errs []string) {
	properties, _ := s["properties"].(map[string]any)
	others, _ := s["additionalProperties"].(map[string]any)
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		sub, ok := properties[k].(map[string]any)
		if !ok {
			sub = others
		}
		if sub == nil {
			errs = append(errs, path+"."+k+": not in the schema")
			continue
		}
		errs = append(errs, check(sub, v[k], path+"."+k)...)
	}
	required, _ := s["required"].([]any)
	for _, k := range required {
		if _, ok := v[k.(string)]; !ok {
			errs = append(errs, path+"."+k.(string)+": is not there")
		}
	}
	return errs
}
