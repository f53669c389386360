package laws

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestViewsDoNotJudge: what is wrong, how bad and which is worse is decided by
// internal/collect/assess alone. A view that holds a value against its limit, ranks
// states or picks a colour by a state of its own would say something else than
// the others.
func TestViewsDoNotJudge(t *testing.T) {
	for _, dir := range []string{"../../view", "../../past/kube", "../../past/fleet", "../../cli/doctor", "../../past/alert", "../../cli/host"} {
		goFiles(t, dir, func(path string, f *ast.File) {
			if strings.Contains(path, "tuitest") { // makes hosts up for tests
				return
			}
			for _, why := range judgements(f) {
				t.Errorf("%s %s: ask internal/collect/assess", path, why)
			}
		})
	}
}

// TestJudgementsAreFound: the law notices what it forbids.
func TestJudgementsAreFound(t *testing.T) {
	for name, body := range map[string]string{
		"a limit":           `if d.Temperature.V >= d.TemperatureLimit.V-5 { return bad }`,
		"a limit in a case": `switch { case d.Power.V > 0.95*d.PowerLimit.V: return warn }`,
		"a clock":           `return d.AICLK.V < 0.97*d.AICLKMax.V`,
		"a link":            `if d.PCIe.Degraded.V { return warn }`,
		"a ranking":         `return map[model.State]int{model.StateHung: 3, model.StateOK: 0}[d.State]`,
		"another ranking":   `return map[model.ConditionKind]float64{model.ConditionHung: 3}[k]`,
		"a colour":          `switch d.State { case model.StateHung: return bad }`,
		"another colour":    `if k == model.ConditionThrottled { return warn }`,
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() int {\n"+body+"\n}", 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(judgements(f)) == 0 {
				t.Errorf("%s is not found: %s", name, body)
			}
		})
	}
}

// TestViewsTakeFormatsFromTheTable: how a value of a device is written is in
// the table of internal/field/metric. A view with a format of its own would write
// other digits than the next one.
func TestViewsTakeFormatsFromTheTable(t *testing.T) {
	for _, dir := range []string{"../../view", "../../cli/mem", "../../cli/doctor", "../../past/fleet", "../../../cmd/ttmon"} {
		goFiles(t, dir, func(path string, f *ast.File) {
			if f.Name.Name == "words" {
				return
			}
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if pkg, is := selected(s, ok); is && pkg == "words" && slices.Contains([]string{"Temperature", "Watts", "MHz"}, s.Sel.Name) {
					t.Errorf("%s writes a value with words.%s: show its field of internal/field/metric", path, s.Sel.Name)
				}
				return true
			})
		})
	}
}

// selected is the package of a selector, if it is one.
func selected(s *ast.SelectorExpr, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	id, is := s.X.(*ast.Ident)
	if !is {
		return "", false
	}
	return id.Name, true
}

// judgements lists what in a file decides about the health of a device.
func judgements(f *ast.File) (list []string) {
	wording := f.Name.Name == "words" || f.Name.Name == "event" || f.Name.Name == "doctor" || f.Name.Name == "metric"
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LSS, token.LEQ, token.GTR, token.GEQ:
				if mentions(n, "TemperatureLimit", "PowerLimit", "CurrentLimit", "AICLKMax", "ShutdownTemperature") {
					list = append(list, "holds a value against its limit")
				}
			case token.EQL, token.NEQ:
				if !wording && mentions(n, "ConditionHot", "ConditionThrottled", "ConditionHung", "ConditionLost") {
					list = append(list, "treats one condition apart")
				}
			}
		case *ast.IfStmt:
			if mentions(n.Cond, "Degraded") {
				list = append(list, "decides about a link")
			}
		case *ast.CompositeLit:
			if ranks(n) {
				list = append(list, "ranks states")
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				if !wording && mentions(e, "StateHung", "ConditionHung") {
					list = append(list, "picks something by a state")
				}
			}
		}
		return true
	})
	return list
}

// ranks reports whether a literal gives numbers to states.
func ranks(c *ast.CompositeLit) bool {
	m, ok := c.Type.(*ast.MapType)
	if !ok || !mentions(m.Key, "State", "ConditionKind") {
		return false
	}
	v, ok := m.Value.(*ast.Ident)
	return ok && (v.Name == "int" || v.Name == "float64") && len(c.Elts) > 0
}

// mentions reports whether one of some names occurs in a piece of code.
func mentions(n ast.Node, names ...string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			for _, name := range names {
				found = found || id.Name == name
			}
		}
		return !found
	})
	return found
}
