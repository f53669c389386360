package alert

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/ttmon/ttmon/internal/base/nearest"
	"github.com/ttmon/ttmon/internal/past/promapi"
	"github.com/ttmon/ttmon/internal/view/prom"
)

//go:embed rules.toml
var shipped []byte

// Rule is when to tell, and what.
type Rule struct {
	Name     string            `toml:"name"`
	Expr     string            `toml:"expr"` // PromQL; every series that it returns is an alert
	For      Duration          `toml:"for"`  // how long it must hold
	Keep     Duration          `toml:"keep_firing_for"`
	Every    Duration          `toml:"every"` // how often it is evaluated; 0: at every evaluation
	Severity string            `toml:"severity"`
	Labels   map[string]string `toml:"labels"`
	// Templates as Prometheus has them, with $labels and $value.
	Summary     string `toml:"summary"`
	Description string `toml:"description"`
	Disabled    bool   `toml:"disabled"`
}

// Silence keeps alerts from being sent; they are shown all the same.
type Silence struct {
	Alert  string            `toml:"alert"`  // name of the rule; empty: any
	Labels map[string]string `toml:"labels"` // which the alert must have
	From   time.Time         `toml:"from"`
	Until  time.Time         `toml:"until"` // zero: for ever
	Reason string            `toml:"reason"`
}

// Duration is a time.Duration written as in "90s".
type Duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(b))
	if err == nil && d.Duration < 0 {
		err = fmt.Errorf("%v is negative", d.Duration)
	}
	return err
}

// Set is all rules and silences.
type Set struct {
	Rules    []Rule    `toml:"rule"`
	Silences []Silence `toml:"silence"`
}

// Bounds of a file.
const (
	maxRules = 500
	maxFile  = 1 << 20
)

// Shipped are the rules that come with ttmon-server.
func Shipped() Set {
	s, err := parseSet(shipped)
	if err != nil {
		panic("BUG: the shipped rules: " + err.Error())
	}
	return s
}

// Load joins the shipped rules with those of a file. An empty path, or one
// where there is no file, is no error.
func Load(path string) (Set, error) {
	set := Shipped()
	if path == "" {
		return set, nil
	}
	st, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return set, nil
	}
	if err == nil && st.Size() > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err != nil {
		return set, fmt.Errorf("reading %s: %w", path, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return set, fmt.Errorf("reading the alert rules: %w", err)
	}
	own, err := parseSet(b)
	if err != nil {
		return set, fmt.Errorf("%s: %w", path, err)
	}
	for _, r := range own.Rules {
		i := slices.IndexFunc(set.Rules, func(x Rule) bool { return x.Name == r.Name })
		switch {
		case r.Disabled && i >= 0:
			set.Rules = slices.Delete(set.Rules, i, i+1)
		case r.Disabled:
			return set, fmt.Errorf("%s: rule %s is disabled, but there is no rule of that name", path, r.Name)
		case i >= 0:
			set.Rules[i] = r
		default:
			set.Rules = append(set.Rules, r)
		}
	}
	set.Silences = own.Silences
	return set, nil
}

// parseSet reads a file strictly.
func parseSet(b []byte) (set Set, err error) {
	d := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields()
	err = d.Decode(&set)
	if e, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		row, _ := e.Errors[0].Position()
		return set, fmt.Errorf("line %d: unknown key %s:\n%s", row, strings.Join(e.Errors[0].Key(), "."), e.Errors[0].String())
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, _ := e.Position()
		return set, fmt.Errorf("line %d: %w:\n%s", row, e, e.String())
	}
	if err != nil {
		return set, err
	}
	if len(set.Rules) > maxRules {
		return set, fmt.Errorf("%d rules are more than %d", len(set.Rules), maxRules)
	}
	seen := map[string]bool{}
	for i := range set.Rules {
		r := &set.Rules[i]
		if seen[r.Name] {
			return set, fmt.Errorf("rule %s is defined twice", r.Name)
		}
		seen[r.Name] = true
		if err := r.check(); err != nil {
			return set, err
		}
	}
	for i := range set.Silences {
		if s := &set.Silences[i]; s.Alert == "" && len(s.Labels) == 0 {
			return set, fmt.Errorf("silence %d matches every alert: set alert or labels", i+1)
		}
	}
	return set, nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (r *Rule) check() error {
	if !nameForm.MatchString(r.Name) {
		return fmt.Errorf("rule %q: a name may have letters, digits and _ only", r.Name)
	}
	if r.Disabled {
		return nil
	}
	expr, err := promapi.Parser().ParseExpr(r.Expr)
	if err == nil {
		err = checkNames(expr)
	}
	if err != nil {
		return fmt.Errorf("rule %s: expr: %w", r.Name, err)
	}
	switch r.Severity {
	case "":
		r.Severity = "warning"
	case "info", "warning", "critical":
	default:
		return fmt.Errorf("rule %s: severity %q is not one of info, warning, critical", r.Name, r.Severity)
	}
	for name := range r.Labels {
		if !nameForm.MatchString(name) {
			return fmt.Errorf("rule %s: %q is not a label name", r.Name, name)
		}
	}
	for what, text := range map[string]string{"summary": r.Summary, "description": r.Description} {
		if err := checkTemplate(text); err != nil {
			return fmt.Errorf("rule %s: %s: %w", r.Name, what, err)
		}
	}
	return nil
}

// checkNames finds metrics that ttmond does not have: a rule about one would
// wait for ever.
func checkNames(expr parser.Expr) (err error) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok || !strings.HasPrefix(v.Name, "tenstorrent_") || err != nil {
			return nil
		}
		var known []string
		for _, f := range prom.Families() {
			known = append(known, f.Name)
		}
		if slices.Contains(known, v.Name) {
			return nil
		}
		err = fmt.Errorf("unknown metric %s", v.Name)
		if near := nearest.Word(v.Name, known); near != "" {
			err = fmt.Errorf("%w: did you mean %s?", err, near)
		}
		return nil
	})
	return err
}

// silenced reports whether an alert is silenced now, and why.
func (s *Set) silenced(labels map[string]string, now time.Time) (reason string, ok bool) {
	for i := range s.Silences {
		x := &s.Silences[i]
		if x.Alert != "" && x.Alert != labels[nameLabel] || now.Before(x.From) || !x.Until.IsZero() && now.After(x.Until) {
			continue
		}
		all := true
		for k, v := range x.Labels {
			all = all && labels[k] == v
		}
		if all {
			return x.Reason, true
		}
	}
	return "", false
}
