package model_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
)

// Every kind of condition has what views need of it, and the documentation has the
// table.
func TestConditionKinds(t *testing.T) {
	marks := map[string]model.ConditionKind{}
	table := "| condition | level | when | what to do |\n|---|---|---|---|\n"
	for _, k := range model.ConditionKinds {
		if k.Word == "" {
			t.Errorf("%s has no word", k.Kind)
		}
		if k.State && (utf8.RuneCountInString(k.Word) > 9 || utf8.RuneCountInString(k.Mark) != 1) {
			t.Errorf("%s: %q and %q are too wide for a state, or missing", k.Kind, k.Word, k.Mark)
		}
		if other := marks[k.Mark]; k.State && other != "" {
			t.Errorf("%s and %s have the mark %s", k.Kind, other, k.Mark)
		}
		marks[k.Mark] = k.Kind
		if k.Ended == "" && k.EndedText != "" || k.Begun != "" && k.Event == "" {
			t.Errorf("%s: half of an event", k.Kind)
		}
		if k.Level > model.Fine {
			table += fmt.Sprintf("| `%s` | %s | %s | %s |\n", k.Kind, k.Level, k.When, k.Do)
		}
	}
	golden.CheckTable(t, "../../docs/conditions.md", table)
}

func TestEventKinds(t *testing.T) {
	table := "| event | when |\n|---|---|\n"
	for _, k := range model.EventKinds {
		table += fmt.Sprintf("| `%s` | %s |\n", k.Kind, k.When)
	}
	golden.CheckTable(t, "../../docs/conditions.md", table)
	if unknown := model.EventKind("of-the-future").Row(); unknown.Kind != "of-the-future" || strings.Contains(unknown.When, " ") {
		t.Errorf("a kind that is not known is %+v", unknown)
	}
}

// A kind that is declared has its row.
func TestEveryKindHasARow(t *testing.T) {
	for file, c := range map[string]struct {
		declared string
		has      func(kind string) bool
	}{
		"conditionkinds.go": {`ConditionKind = "([a-z_]+)"`, func(k string) bool {
			return model.ConditionKinds[model.ConditionKind(k).Rank()].Kind == model.ConditionKind(k)
		}},
		"event.go": {`EventKind = "([a-z_]+)"`, func(k string) bool { return model.EventKind(k).Row().When != "" }},
	} {
		t.Run(file, func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found := regexp.MustCompile(c.declared).FindAllSubmatch(source, -1)
			if len(found) < 15 {
				t.Errorf("%d kinds are declared: this test does not see them", len(found))
			}
			for _, m := range found {
				if !c.has(string(m[1])) {
					t.Errorf("%s has no row", m[1])
				}
			}
		})
	}
}
