package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := Parse(`name=llama,cmd=python3 serve.py --shapes 1\,2,devices=0+3,fds=2,load=0.25,cpu=1.5,rss=64M,user=1000,forks=1,orphan,pidns,append,count=2`)
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{
		Name: "llama", Command: []string{"python3", "serve.py", "--shapes", "1,2"}, Devices: []int{0, 3}, FDs: 2, Load: 0.25,
		CPU: 1.5, RSS: 64 << 20, User: 1000, Forks: 1, Orphan: true, PIDNS: true, Append: true,
	}
	if diff := cmp.Diff([]Spec{want, want}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string]Spec{
		"":                       {Name: "workload", Command: []string{"workload"}, FDs: 1, Load: 0.6},
		"cmd=/usr/bin/python3 x": {Name: "python3", Command: []string{"/usr/bin/python3", "x"}, FDs: 1, Load: 0.6},
		"kind=metal,file=x=y":    {Name: "workload", Command: []string{"workload"}, FDs: 1, Load: 0.6, Kind: "metal", Params: Params{"file": "x=y"}},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := Parse(text)
			if err != nil {
				t.Errorf("%q: %v", text, err)
				return
			}
			if diff := cmp.Diff([]Spec{want}, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", text, diff)
			}
		})
	}
}

func TestParseMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"nam=x":                 `no setting "nam"`,
		"fds=0":                 "1 to 1000",
		"load=2":                "0 to 1",
		"load=NaN":              "0 to 1",
		"devices=0-3":           `"0-3"`,
		"rss=1T":                "not a size",
		"name=0123456789abcdef": "15 bytes",
		"count=0":               "count",
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want an error with %q", text, err, want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`name=llama,cmd=a\,b,devices=0+1`)
	f.Add("kind=metal,x=y,count=3")
	f.Add(",,=,\\")
	f.Fuzz(func(t *testing.T, s string) {
		specs, err := Parse(s)
		if err != nil {
			return
		}
		for _, spec := range specs {
			if spec.Name == "" || len(spec.Name) > 15 || len(spec.Command) == 0 || spec.FDs < 1 || !(spec.Load >= 0 && spec.Load <= 1) {
				t.Errorf("%q gives %+v", s, spec)
			}
		}
	})
}
