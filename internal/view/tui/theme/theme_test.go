package theme

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// TestShipped: every shipped theme can be read, has a look for what must be
// told apart, and is offered by the configuration.
func TestShipped(t *testing.T) {
	offered := config.OptionAt("display.theme").Choices
	for _, name := range Names() {
		th, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Contains(offered, name) {
			t.Errorf("%s is shipped, and display.theme does not offer it", name)
		}
		health := map[Color]string{}
		for _, s := range []cells.Style{cells.Good, cells.Warn, cells.Bad} {
			if c := th.Styles[s].FG; c != Default {
				health[c] = s.String()
			}
		}
		for i := range cells.NumSeries {
			if s := th.Styles[cells.Series(i)]; health[s.FG] != "" && name != "contrast" {
				t.Errorf("%s: line %d has the colour of %s, which is for health", name, i, health[s.FG])
			}
		}
	}
	for _, name := range offered {
		if name != "auto" && !slices.Contains(Names(), name) {
			t.Errorf("display.theme offers %s, which is not shipped", name)
		}
	}
}

func TestParse(t *testing.T) {
	th, err := Parse("mine", "base = dark // the rest\nwarn = bold underline #010203 on 17\n\nramp = #000000 #ffffff\ntext = default on #101010\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := th.Styles[cells.Warn], (Paint{FG: RGB(0x010203), BG: 17, Bold: true, Underline: true}); got != want {
		t.Errorf("warn is %+v", got)
	}
	if first, last := th.Styles[cells.Ramp0].FG, th.Styles[cells.Ramp7].FG; first != RGB(0) || last != RGB(0xffffff) {
		t.Errorf("the ramp goes from %x to %x", first, last)
	}
	if got := th.Styles[cells.Good]; got.FG != 2 || got.BG != RGB(0x101010) {
		t.Errorf("good is %+v: it should have the base's colour on the text's background", got)
	}
}

func TestParseErrors(t *testing.T) {
	for src, want := range map[string]string{
		"text":                  `line 1: "text" is not of the form name = value`,
		"\nwran = red":          `line 2: unknown style "wran": did you mean warn?`,
		"text = #12":            `line 1: text: "#12" is not a colour: write it as #rrggbb`,
		"text = 256":            `"256" is not a colour`,
		"text = mauve":          `"mauve" is not a colour`,
		"text =":                "text has no value",
		"base = none":           `base: "none" is not one of`,
		"series = red nonsense": `"nonsense" is not a colour`,
	} {
		t.Run(src, func(t *testing.T) {
			if _, err := Parse("x", src); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", src, err, want)
			}
		})
	}
}

// TestLoad: the user's own themes are found by name and by path, and never
// instead of a shipped one.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"mine": "good = 99", "dark": "good = 99"} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, good := range map[string]Color{"mine": 99, filepath.Join(dir, "mine.theme"): 99, "dark": 2} {
		t.Run(name, func(t *testing.T) {
			th, err := Load(name, dir)
			if err != nil || th.Styles[cells.Good].FG != good {
				t.Errorf("%+v, %v", th, err)
			}
		})
	}
	for _, name := range []string{"missing", dir + "/missing.theme", "../dark", ""} {
		if _, err := Load(name, dir); err == nil {
			t.Errorf("%q was found", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		b, err := shipped.ReadFile("themes/" + name + suffix)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(_ *testing.T, src string) { _, _ = Parse("x", src) })
}
