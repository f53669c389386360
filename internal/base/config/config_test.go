package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/golden"
)

func noEnv(string) string { return "" }

func env(pairs ...string) func(string) string {
	return func(k string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == k {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestPath(t *testing.T) {
	for _, c := range []struct {
		name string
		env  func(string) string
		want string
	}{
		{"home", env("HOME", "/home/u"), "/home/u/.config/ttmon/config.toml"},
		{"XDG_CONFIG_HOME", env("HOME", "/home/u", "XDG_CONFIG_HOME", "/x"), "/x/ttmon/config.toml"},
		{"relative XDG_CONFIG_HOME", env("HOME", "/home/u", "XDG_CONFIG_HOME", "relative"), "/home/u/.config/ttmon/config.toml"},
		{"TTMON_CONFIG", env("HOME", "/home/u", "TTMON_CONFIG", "/tmp/c.toml"), "/tmp/c.toml"},
		{"no home", noEnv, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Path(c.env); got != c.want {
				t.Errorf("Path = %q, want %q", got, c.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	c, err := Parse([]byte("[display]\ntheme = \"light\"\n[top]\ninterval = \"500ms\"\n[top.charts]\nmetrics = [\"power\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Display.Theme = "light"
	want.Top.Interval = Duration(500 * time.Millisecond)
	want.Top.Charts.Metrics = []string{"power"}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

// Errors have to say where and what, so that the file can be put right
// without a manual.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"[display]\ntheem = \"light\"\n", "line 2: unknown key display.theem: did you mean display.theme?"},
		{"interval = \"1s\"\n", "line 1: unknown key interval: did you mean top.interval?"},
		{"[colour]\nx = 1\n", "line 1: unknown key colour"},
		{"[display]\ncorners = \"pink\"\n", `display.corners: "pink" is not one of square, round`},
		{"[top]\ninterval = \"1ms\"\n", "top.interval: 1ms is not between 100ms and 1h"},
		{"[top]\ninterval = \"soon\"\n", `line 2, column 12: "soon" is not a duration such as 500ms, 1s or 10m`},
		{"[top]\ninterval = 1\n", `top.interval: 1ns is not between 100ms and 1h (write a length of time as "1s"`},
		{"[top\n", "line 1, column 5:"},
		{"[display]\nmouse = 'yes'\n", "line 2, column 9:"},
	} {
		t.Run(c.in, func(t *testing.T) {
			_, err := Parse([]byte(c.in))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Parse(%q): error %v, want it to contain %q", c.in, err, c.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	c, err := Load(path, noEnv)
	if err != nil || !reflect.DeepEqual(c, Default()) {
		t.Errorf("without a file: %+v, %v", c, err)
	}
	if err := os.WriteFile(path, []byte("[top]\ninterval = \"2s\"\nreadonly = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err = Load(path, env("TTMON_TOP_INTERVAL", "3s", "TTMON_TOP_CHARTS_METRICS", "power, temperature"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Top.Interval != Duration(3*time.Second) || !c.Top.ReadOnly || !reflect.DeepEqual(c.Top.Charts.Metrics, []string{"power", "temperature"}) {
		t.Errorf("the environment does not come after the file: %+v", c.Top)
	}
	if _, err = Load(path, env("TTMON_DISPLAY_MOUSE", "maybe")); err == nil || !strings.Contains(err.Error(), "TTMON_DISPLAY_MOUSE") {
		t.Errorf("error %v does not name the variable", err)
	}
	if err := os.WriteFile(path, []byte("x = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = Load(path, noEnv); err == nil || !strings.Contains(err.Error(), path+": line 1") {
		t.Errorf("error %v does not name file and line", err)
	}
	if _, err = Load(filepath.Dir(path), noEnv); err == nil {
		t.Error("a directory in place of the file is no error")
	}
}

// Every field can be set through its option, and every option is a field:
// a setting without a row in the table would be lost by the setup screen.
func TestOptionsCoverConfig(t *testing.T) {
	fields := map[string]bool{}
	var walk func(prefix string, v reflect.Type)
	walk = func(prefix string, v reflect.Type) {
		for i := range v.NumField() {
			f := v.Field(i)
			path := prefix + f.Tag.Get("toml")
			if f.Type.Kind() == reflect.Struct {
				walk(path+".", f.Type)
			} else {
				fields[path] = true
			}
		}
	}
	walk("", reflect.TypeFor[Config]())
	for _, o := range Options() {
		if !fields[o.Path] {
			t.Errorf("option %s is no field", o.Path)
		}
		delete(fields, o.Path)
		if o.Title == "" || !strings.HasSuffix(o.Help, ".") {
			t.Errorf("option %s says nothing about itself", o.Path)
		}
		c := Default()
		if err := o.check(&c); err != nil {
			t.Errorf("the default is not allowed: %v", err)
		}
	}
	for f := range fields {
		t.Errorf("field %s has no option", f)
	}
}

func TestSaveNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "config.toml")
	c := Default()
	c.Display.Theme = "light"
	c.Top.Processes.Columns = []string{"pid", "dram", "command"}
	if err := Save(path, c); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "new.toml"), got)
	back, err := Load(path, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Error(diff)
	}
}

// What people wrote around the settings stays as it is.
func TestSaveKeepsTheRest(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{
			"value replaced, comments kept",
			"# mine\n[display] # d\n  theme   =  \"dark\" # at night\n\n# end\n",
			"# mine\n[display] # d\n  theme   =  \"light\" # at night\n\n# end\n",
		},
		{
			"array over several lines",
			"[top.charts]\nmetrics = [ # two\n  \"dram\",\n  'power', # w\n] # z\n[display]\ntheme='dark'\n",
			"[top.charts]\nmetrics = [\"dram\", \"power\"] # z\n[display]\ntheme=\"light\"\n",
		},
		{
			"dotted key at the top",
			"display.theme = \"dark\"\n\n[top]\nreadonly = true\n",
			"display.theme = \"light\"\n\n[top]\nreadonly = true\n",
		},
		{
			"key added to its table",
			"[display]\nmouse = true\n\n[top]\nreadonly = true",
			"[display]\nmouse = true\ntheme = \"light\"\n\n[top]\nreadonly = true",
		},
		{
			"table added, no newline at the end",
			"[top]\nreadonly = true",
			"[top]\nreadonly = true\n\n[display]\ntheme = \"light\"\n",
		},
		{
			"commented default made real",
			"[top]\n# theme = \"x\"\n[display]\n# theme = \"auto\"\n# mouse = true\n",
			"[top]\n# theme = \"x\"\n[display]\ntheme = \"light\"\n# mouse = true\n",
		},
		{"empty file", "", "[display]\ntheme = \"light\"\n"},
		{"only a comment", "# nothing", "# nothing\n\n[display]\ntheme = \"light\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, err := Parse([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			want.Display.Theme = "light"
			if strings.Contains(c.in, "metrics") {
				// Unchanged values are not touched: force this one.
				b, err := edit([]byte(c.in), "top.charts.metrics", `["dram", "power"]`)
				if err != nil {
					t.Fatal(err)
				}
				c.in = string(b)
			}
			got, err := apply([]byte(c.in), want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSaveRefuses(t *testing.T) {
	c := Default()
	c.Display.Theme = "light"
	for _, in := range []string{"display = { mouse = true }\n", "nonsense = 1\n", "[display\n"} {
		path := filepath.Join(t.TempDir(), "c.toml")
		if err := os.WriteFile(path, []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Save(path, c); err == nil {
			t.Errorf("Save over %q gives no error", in)
		}
		if got, _ := os.ReadFile(path); string(got) != in {
			t.Errorf("Save over %q left %q", in, got)
		}
	}
	if err := Save("", c); err == nil {
		t.Error("Save without a path gives no error")
	}
}

func TestSaveKeepsLinkAndMode(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "dotfiles.toml"), filepath.Join(dir, "config.toml")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.Top.ReadOnly = true
	if err := Save(link, c); err != nil {
		t.Fatal(err)
	}
	if st, _ := os.Lstat(link); st.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
	if st, _ := os.Stat(target); st.Mode().Perm() != 0o600 {
		t.Errorf("mode is now %v", st.Mode())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".config-*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestClone(t *testing.T) {
	a := Default()
	b := a.Clone()
	b.Top.Charts.Metrics[0] = "x"
	if a.Top.Charts.Metrics[0] == "x" {
		t.Error("a clone shares its slices")
	}
}

// Whatever the file contains, saving either refuses or reads back as asked, and
// never touches what stands in a comment.
func FuzzSave(f *testing.F) {
	for _, s := range []string{
		"", "[display]\ntheme = \"dark\" # c\n", "display.theme='light'\n", "display={theme=\"dark\"}\n",
		"[top.charts]\nmetrics=[\n'a'\n]\n", "[\"display\"]\n\"theme\" = '''dark'''\n", "[top]\r\ninterval=\"1s\"\r\n", "# x",
		string(template()),
	} {
		f.Add([]byte(s), "light", "user=root dram>1G")
	}
	f.Fuzz(func(t *testing.T, doc []byte, theme, filter string) {
		c, err := Parse(doc)
		if err != nil {
			return
		}
		if OptionAt("display.theme").Set(&c, theme) != nil {
			c.Display.Theme = "mono"
		}
		c.Top.Processes.Filter = strings.ToValidUTF8(filter, "")
		out, err := apply(doc, c)
		if err != nil {
			return
		}
		back, err := Parse(out)
		if err != nil {
			t.Fatalf("saved file is broken: %v\n%s", err, out)
		}
		if back.Display.Theme != c.Display.Theme || back.Top.Processes.Filter != c.Top.Processes.Filter {
			t.Fatalf("saved %q %q, read back %q %q", c.Display.Theme, c.Top.Processes.Filter, back.Display.Theme, back.Top.Processes.Filter)
		}
	})
}
