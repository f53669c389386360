package api

import (
	"encoding"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"
)

// openAPI describes calls for programs: OpenAPI 3.1, made from the types that are
// sent. A test holds every answer against it.
func openAPI(calls []Call) []byte {
	paths := map[string]map[string]any{}
	for _, c := range calls {
		if paths["/api"+c.Path] == nil {
			paths["/api"+c.Path] = map[string]any{}
		}
		paths["/api"+c.Path][strings.ToLower(c.Method)] = c.operation()
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
}

func (c *Call) operation() map[string]any {
	params := []any{}
	for _, p := range c.Params {
		in := "query"
		if p.InPath {
			in = "path"
		}
		params = append(params, map[string]any{"name": p.Name, "in": in, "required": p.Required, "description": p.Help, "schema": map[string]any{"type": "string"}})
	}
	kind, schema := "application/json", any(map[string]any{"type": "string"})
	if c.Kind != "" {
		kind = c.Kind
	} else {
		schema = schemaOf(reflect.TypeOf(c.Answer))
	}
	failed := map[string]any{"description": "why not", "content": map[string]any{"application/json": map[string]any{
		"schema": map[string]any{"type": "object", "required": []string{"error"}, "properties": map[string]any{"error": map[string]any{"type": "string"}}},
	}}}
	return map[string]any{
		"summary": c.Help, "parameters": params,
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
	_, _ = w.Write(s.description())
}
