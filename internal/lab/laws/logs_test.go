package laws

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestLogMessagesAreConstant: an operator greps for a message and alerts on it, so
// it is the same text every time, short, and its values are key=value beside it.
func TestLogMessagesAreConstant(t *testing.T) {
	found := 0
	for _, dir := range []string{"../../../cmd", "../.."} {
		goFiles(t, dir, func(path string, f *ast.File) {
			for _, m := range logMessages(f) {
				found++
				if m.why != "" {
					t.Errorf("%s: %s: log %s", path, m.text, m.why)
				}
			}
		})
	}
	if found < 100 {
		t.Errorf("only %d log messages found: this test cannot fail", found)
	}
}

// TestLogMessagesAreFound: the law notices what it forbids, and allows the rest.
func TestLogMessagesAreFound(t *testing.T) {
	for _, c := range []struct{ name, body, why string }{
		{"constant", `log.Warn("cannot open history", "err", err)`, ""},
		{"by level", `s.log.Log(ctx, level, "cannot open history")`, ""},
		{"program first", `d.log.Info("ttmond is ready")`, ""},
		{"acronym", `d.log.Info("HTTP listener failed")`, ""},
		{"made of parts", `log.Warn("cannot open " + path)`, "a constant"},
		{"formatted", `s.log.Error(fmt.Sprintf("cannot open %s", path))`, "a constant"},
		{"capital", `log.Warn("Cannot open history")`, "lower case"},
		{"article", `log.Warn("a client cannot be served")`, "article"},
		{"sentence", `log.Warn("cannot open history.")`, "full stop"},
		{"long", `log.Warn("cannot open history because the disk is full, or another ttmon-server has it open")`, "at most"},
		{"key", `log.Warn("cannot open history", "state dir", d)`, "snake_case"},
		{"key is a variable", `log.Warn("cannot open history", key, d)`, "snake_case"},
		{"value without a key", `log.Warn("cannot open history", "err")`, "pairs"},
		{"forwarded", `s.say(level, uid, "A library is bad")`, "lower case"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {\n"+c.body+"\n}", 0)
			if err != nil {
				t.Fatal(err)
			}
			got := logMessages(f)
			if len(got) != 1 {
				t.Fatalf("found %d messages in %s", len(got), c.body)
			}
			if c.why == "" && got[0].why != "" || !strings.Contains(got[0].why, c.why) {
				t.Errorf("%s: %q, want %q", c.body, got[0].why, c.why)
			}
		})
	}
}

type logMessage struct{ text, why string }

// logMessages finds the calls of a logger in a file: a method named after a
// level on something named log, Log, logger or slog, or one of the functions that
// log on behalf of a user (say) or of the history (Notify).
func logMessages(f *ast.File) []logMessage {
	var out []logMessage
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return !forwards(n)
		case *ast.CallExpr:
			if args, ok := logArgs(n); ok {
				text, why := badMessage(args, n.Ellipsis.IsValid())
				out = append(out, logMessage{text, why})
			}
		}
		return true
	})
	return out
}

// forwards reports whether a function passes on the message of its caller, whose
// call is checked instead.
func forwards(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		for _, name := range p.Names {
			if name.Name == "message" {
				return true
			}
		}
	}
	return false
}

// logArgs returns the message and what follows it, if a call logs.
func logArgs(call *ast.CallExpr) ([]ast.Expr, bool) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil, false
	}
	skip := -1
	switch sel.Sel.Name {
	case "Debug", "Info", "Warn", "Error":
		skip = 0
	case "Log":
		skip = 2
	}
	if !isLogger(sel.X) {
		skip = -1
	}
	switch sel.Sel.Name {
	case "say":
		if len(call.Args) < 3 { // views have a say of their own
			return nil, false
		}
		if s, ok := call.Args[1].(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Level") {
			skip = 2
		} else if s, ok := call.Args[0].(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Level") {
			skip = 2
		} else if id, ok := call.Args[0].(*ast.Ident); ok && id.Name == "level" {
			skip = 2
		}
	case "Notify", "notify":
		if len(call.Args) > 0 {
			if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				skip = 0
			}
		}
	}
	if skip < 0 || len(call.Args) <= skip {
		return nil, false
	}
	return call.Args[skip:], true
}

func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "log" || x.Name == "slog" || x.Name == "logger"
	case *ast.SelectorExpr:
		return x.Sel.Name == "log" || x.Sel.Name == "Log"
	}
	return false
}

var (
	snake    = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	capital  = regexp.MustCompile(`^[A-Z][a-z ]`)
	article  = regexp.MustCompile(`^(a|an|the) `)
	maxInLog = 75
)

// badMessage says what is wrong with a message and its keys; "" is nothing.
func badMessage(args []ast.Expr, spread bool) (text, why string) {
	lit, ok := args[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "a message", "a constant, and values as key=value"
	}
	text, _ = strconv.Unquote(lit.Value)
	switch {
	case capital.MatchString(text):
		return text, "in lower case"
	case article.MatchString(text):
		return text, "without an article: what happened first"
	case strings.HasSuffix(text, "."):
		return text, "without a full stop"
	case strings.Contains(text, "%"):
		return text, "values as key=value"
	case len(text) > maxInLog:
		return text, "at most " + strconv.Itoa(maxInLog) + " characters"
	}
	if spread {
		return text, ""
	}
	pairs := args[1:]
	if len(pairs)%2 != 0 {
		return text, "keys and values in pairs"
	}
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(*ast.BasicLit)
		if !ok {
			return text, "keys as constants in snake_case"
		}
		if name, _ := strconv.Unquote(key.Value); !snake.MatchString(name) {
			return text, "keys in snake_case, not " + name
		}
	}
	return text, ""
}
