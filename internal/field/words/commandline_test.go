package words

import (
	"testing"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		name, command string
		width         int
		want          string
	}{
		{"an interpreter by its name", "/opt/venv/bin/python /home/anna/train.py --batch 32", 60, "python /home/anna/train.py --batch 32"},
		{"a script, too, where it is narrow", "/opt/venv/bin/python /home/anna/train.py --batch 32", 30, "python train.py --batch 32"},
		{"only as many as needed", "/usr/bin/python /home/anna/train.py /data/a.yaml", 30, "python train.py /data/a.yaml"},
		{"an option is left as it is", "/usr/bin/env --data=/very/long/path/indeed", 20, "env --data=/very/lo…"},
		{"the script without its interpreter", "/usr/bin/python3 /home/anna/train.py", 10, "train.py"},
		{"a module", "/usr/bin/python3 -m train", 10, "python3 -…"},
		{"nothing", "", 20, ""},
		{"the root", "/ /", 1, "…"},
		{"what a terminal would obey", "/bin/a\x1b[2J b", 40, Escape("a\x1b[2J") + " b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := CommandLine(c.command, c.width); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
