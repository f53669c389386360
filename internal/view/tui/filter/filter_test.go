package filter

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var fields = []Field{
	{Name: "user", Kind: Text},
	{Name: "command", Aliases: []string{"cmd"}, Kind: Text},
	{Name: "dram", Kind: Bytes},
	{Name: "time", Kind: Seconds},
	{Name: "device", Aliases: []string{"dev"}, Kind: Number},
	{Name: "cpu", Kind: Number},
}

type row struct {
	user, cmd string
	dram      float64 // negative: unknown
	time      float64
	devices   []float64
	cpu       float64
}

func (x row) values(i int) Value {
	switch i {
	case 0:
		return Value{Texts: []string{x.user}}
	case 1:
		return Value{Texts: []string{x.cmd}}
	case 2:
		if x.dram < 0 {
			return Value{}
		}
		return Value{Numbers: []float64{x.dram}}
	case 3:
		return Value{Numbers: []float64{x.time}}
	case 4:
		return Value{Numbers: x.devices}
	default:
		return Value{Numbers: []float64{x.cpu}}
	}
}

const gib = 1 << 30

var rows = map[string]row{
	"serve": {"root", "python3 serve.py --model llama-70b", 10 * gib, 8040, []float64{0, 1, 2, 3}, 98},
	"bench": {"alice", "python3 bench.py", gib, 60, []float64{3}, 0.5},
	"other": {"bob", "train (or not)", -1, 5, []float64{7}, 12},
}

func match(t *testing.T, src string) string {
	t.Helper()
	f, err := Compile(src, fields)
	if err != nil {
		t.Fatalf("Compile(%q): %v", src, err)
	}
	var got []string
	for _, name := range []string{"serve", "bench", "other"} {
		if f.Match(rows[name].values) {
			got = append(got, name)
		}
	}
	return strings.Join(got, " ")
}

func TestMatch(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", "serve bench other"},
		{"  ", "serve bench other"},
		{"user=root dram>1G device=3 cmd~llama", "serve"},
		{"user=root", "serve"},
		{"user==root", "serve"},
		{"user=roo", ""},
		{"user=ro*", "serve"},
		{"user=*o*", "serve other"},
		{"user=*b", "other"},
		{"user=root,bob", "serve other"},
		{`user="root,bob"`, ""},
		{"user!=root", "bench other"},
		{"USER=root", "serve"},
		{"dram>1G", "serve"},
		{"dram>=1G", "serve bench"},
		{"dram >= 1 G", ""}, // the blank ends the value: 1 byte, and a word "G"
		{"dram>=1024MiB", "serve bench"},
		{"dram>1GB", "serve bench"},
		{"dram<2g", "bench"},
		{"dram=1G", "bench"},
		{"dram!=1G", "serve"},
		{"not dram>1G", "bench other"},
		{"dram=?", "other"},
		{"dram!=?", "serve bench"},
		{"time>1h", "serve"},
		{"time<=1m", "bench other"},
		{"time=2h14m", "serve"},
		{"device=3", "serve bench"},
		{"dev=3", "serve bench"},
		{"device=2-5", "serve bench"},
		{"device=1,7", "serve other"},
		{"device>3", "other"},
		{"cpu>50%", "serve"},
		{"cmd~llama", "serve"},
		{"cmd~LLAMA", "serve"},
		{`cmd~"^python3 (serve|bench)"`, "serve bench"},
		{"cmd!~python", "other"},
		{"device~7", "other"},
		{"python", "serve bench"},
		{"python not llama", "bench"},
		{"Alice", "bench"},
		{`"(or not)"`, "other"},
		{`'train (or'`, "other"},
		{`cmd="train (or not)"`, "other"},
		{"user=root or user=bob", "serve other"},
		{"user=root || user=bob", "serve other"},
		{"user=root|user=bob", "serve other"},
		{"(user=root or user=alice) and cpu<50", "bench"},
		{"(user=root|user=alice)&cpu<50", "bench"},
		{"user=root or user=alice cpu<50", "serve bench"},
		{"not (user=root or user=bob)", "bench"},
		{"!(user=root)", "bench other"},
		{"!user=root", "bench other"},
		{"not not user=root", "serve"},
		{"user = root", "serve"},
	} {
		t.Run(c.src, func(t *testing.T) {
			if got := match(t, c.src); got != c.want {
				t.Errorf("%q matches %q, want %q", c.src, got, c.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		src string
		pos int
		msg string
	}{
		{"usr=root", 0, `unknown field "usr": did you mean user?`},
		{"use=root", 0, `did you mean user?`},
		{"comand=x", 0, `did you mean command?`},
		{"elephant=1", 0, `(user command dram time device cpu)`},
		{"user=", 5, "a value is missing after user="},
		{"(user=)", 6, "a value is missing after user="},
		{"user==and", 6, `a value belongs here, not "and": quote it if it is meant`},
		{"=root", 0, "a field is missing before ="},
		{"user=root =", 10, "a field is missing before ="},
		{"dram>big", 5, `dram: "big" is not a number of bytes such as 512M`},
		{"dram>1X", 5, `"1X" is not a number of bytes`},
		{"dram>1Gig", 5, "not a number of bytes"},
		{"time>1y", 5, "not a length of time"},
		{"cpu>NaN", 4, "is not a number"},
		{"cpu>1e999", 4, "is not a number"},
		{"user>root", 4, "user is text: use = or ~"},
		{"dram>?", 4, "=? or !=?"},
		{"cmd~[", 4, "[ is no regular expression: missing closing ]"},
		{"(user=root", 0, "this parenthesis is never closed"},
		{"user=root)", 9, "this parenthesis was never opened"},
		{`cmd="x`, 4, "this quote is never closed"},
		{"user=root or", 12, "something is missing at the end"},
		{"not", 3, "something is missing at the end"},
		{"or user=root", 0, `"or" does not belong here`},
		{strings.Repeat("(", 200) + "x", 100, "nested too deeply"},
		{strings.Repeat("!", 200) + "x", 100, "nested too deeply"},
	} {
		t.Run(fmt.Sprintf("%.20s", c.src), func(t *testing.T) {
			_, err := Compile(c.src, fields)
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Errorf("Compile(%q) = %v, want an *Error", c.src, err)
				return
			}
			if e.Pos != c.pos || !strings.Contains(e.Msg, c.msg) {
				t.Errorf("Compile(%q): at %d: %s\nwant at %d: %s", c.src, e.Pos, e.Msg, c.pos, c.msg)
			}
		})
	}
}

func TestZeroFilter(t *testing.T) {
	var f *Filter
	if !f.Match(rows["serve"].values) || !(&Filter{}).Match(rows["serve"].values) {
		t.Error("no filter lets nothing through")
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"user=root dram>1G device=3 cmd~llama", "(a or b) and not c", `cmd="x\"y"`, "dram=1G-2G,3G", "time<2h30m",
		"!!a", "((", "user=*a*b*", "dram=?", "cmd~(", "日本 user=語", "user =root", "\xff", "a|b&c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		flt, err := Compile(src, fields)
		if err != nil {
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Pos < 0 || e.Pos > len(src) || e.Msg == "" {
				t.Fatalf("Compile(%q): %#v", src, err)
			}
			return
		}
		for _, r := range rows {
			a := flt.Match(r.values)
			if a != flt.Match(r.values) {
				t.Fatal("a match is not the same twice")
			}
			if inv, err := Compile("not ("+src+")", fields); err == nil && flt.root != nil && inv.Match(r.values) == a {
				t.Fatalf("%q and its negation agree", src)
			}
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("a*b*c", "axxbyyc")
	f.Add("**", "")
	f.Fuzz(func(t *testing.T, p, s string) {
		if len(p) > 12 || len(s) > 12 {
			return
		}
		if got, want := glob(p, s), slow(p, s); got != want {
			t.Fatalf("glob(%q, %q) = %v, want %v", p, s, got, want)
		}
	})
}

// slow is the definition of a glob.
func slow(p, s string) bool {
	switch {
	case p == "":
		return s == ""
	case p[0] == '*':
		return slow(p[1:], s) || s != "" && slow(p, s[1:])
	}
	return s != "" && p[0] == s[0] && slow(p[1:], s[1:])
}
