package api_test

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/past"
	"github.com/ttmon/ttmon/internal/past/page"
	"github.com/ttmon/ttmon/internal/view/pagejson"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/why"
)

// pageTypes are the answers that the page reads, by the names that it calls them. Types
// that they are made of follow them; those are called as in Go.
type pageType struct {
	of   any
	name string
}

// pageTypes lists them. answers are the types of the answers to calls, by path.
func pageTypes(answers map[string]any) []pageType {
	return []pageType{
		{pagejson.Snapshot{}, "Said"},
		{pagejson.Device{}, "SaidDevice"},
		{pagejson.Chip{}, "SaidChip"},
		{pagejson.Process{}, "SaidProcess"},
		{pagejson.Use{}, "SaidUse"},
		{pagejson.Column{}, "Column"},
		{pagejson.Mesh{}, "Mesh"},
		{pagejson.Link{}, "MeshLink"},
		{pagejson.End{}, "MeshEnd"},
		{sheet.Value{}, "Fact"},
		{sheet.Pair{}, "Pair"},
		{sheet.Note{}, "Note"},
		{sheet.Column{}, "SheetColumn"},
		{sheet.Row{}, "SheetRow"},
		{sheet.Table{}, "SheetTable"},
		{sheet.Map{}, "SheetMap"},
		{sheet.Part{}, "SheetPart"},
		{sheet.Sheet{}, "Sheet"},
		{why.Page{}, "Failure"},
		{answers["/v1/range"], "RangeAnswer"},
		{model.Event{}, "Event"},
		{itemOf(answers["/v1/metrics"], "Metrics"), "Metric"},
		{answers["/v1/me"], "Me"},
		{answers["/v1/processes/{pid}/map"], "MapAnswer"},
		{itemOf(answers["/v1/processes/{pid}/map"], "Sites"), "Site"},
	}
}

// itemOf is an item of a list in an answer.
func itemOf(answer any, list string) any {
	f, _ := reflect.TypeOf(answer).FieldByName(list)
	return reflect.Zero(f.Type.Elem()).Interface()
}

// web/src/answers.ts is made from the types that are sent, so that the page cannot
// expect anything else.
func TestPageTypes(t *testing.T) {
	w := typeWriter{names: map[reflect.Type]string{}}
	answers := map[string]any{}
	s := api.New(api.Options{})
	for _, c := range slices.Concat(s.PresentCalls(), past.Memory{}.Calls(s), page.Moments(nil).Calls(s)) {
		answers[c.Path] = c.Answer
	}
	types := pageTypes(answers)
	for _, p := range types {
		w.names[reflect.TypeOf(p.of)] = p.name
	}
	for _, p := range types {
		w.declare(reflect.TypeOf(p.of))
	}
	head := "// What the API answers, as far as the page reads it. Made from the Go types that are\n" +
		"// sent (internal/node/api, TestPageTypes; make update): change those.\n\n" +
		"export type Bound = \"exact\" | \"at_least\" | \"unsure\";\n\nexport type Level = \"ok\" | \"info\" | \"warning\" | \"critical\";\n"
	golden.Check(t, "../../../web/src/answers.ts", []byte(head+w.text))
}

// typeWriter writes Go types as those of TypeScript.
type typeWriter struct {
	names map[reflect.Type]string
	done  map[reflect.Type]bool
	text  string
}

// declare writes a struct, and before it those that it needs.
func (w *typeWriter) declare(t reflect.Type) {
	if w.done == nil {
		w.done = map[reflect.Type]bool{}
	}
	if w.done[t] {
		return
	}
	w.done[t] = true
	fields := ""
	for _, f := range reflect.VisibleFields(t) {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "schema" || !f.IsExported() || f.Anonymous {
			continue
		}
		if strings.Contains(rest, "omit") {
			name += "?"
		}
		typ := f.Tag.Get("ts")
		if typ == "" {
			typ = w.of(f.Type)
		}
		fields += fmt.Sprintf("  %s: %s;\n", name, typ)
	}
	w.text += fmt.Sprintf("\nexport interface %s {\n%s}\n", w.name(t), fields)
}

func (w *typeWriter) name(t reflect.Type) string {
	if name, ok := w.names[t]; ok {
		return name
	}
	return strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
}

// of is a type where it is used.
func (w *typeWriter) of(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return w.of(t.Elem()) + " | null"
	case t == reflect.TypeFor[time.Time]():
		return "string"
	case t == reflect.TypeFor[model.Level]():
		return "Level"
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "string"
	}
	switch t.Kind() {
	case reflect.Slice:
		item := w.of(t.Elem())
		if strings.Contains(item, " | ") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case reflect.Array:
		return "[" + strings.TrimSuffix(strings.Repeat(w.of(t.Elem())+", ", t.Len()), ", ") + "]"
	case reflect.Map:
		return "Record<string, " + w.of(t.Elem()) + ">"
	case reflect.Struct:
		w.declare(t)
		return w.name(t)
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Interface:
		return "unknown"
	default:
		return "number"
	}
}
