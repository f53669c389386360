package words

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func TestReach(t *testing.T) {
	anna := model.Process{User: model.Value("anna")}
	all := anna
	all.SlurmJob = "4711"
	all.Reach = model.Reach{FullName: "Anna Smith", JobName: "train", TTY: "pts/3", SSH: "10.1.2.3", Dir: "/home/anna/\x1b"}
	bare := anna
	bare.Reach = model.Reach{FullName: "anna", TTY: "tty1"}
	for want, p := range map[string]model.Process{
		"":              anna,
		"anna, at tty1": bare,
		`anna (Anna Smith), slurm 4711 train, at pts/3, by ssh from 10.1.2.3, directory /home/anna/\x1b`: all,
	} {
		t.Run("full name "+p.Reach.FullName, func(t *testing.T) {
			if got := Reach(&p); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	hidden := all
	hidden.User = model.Missing[string](model.Denied, "")
	if got := Reach(&hidden); got != "" {
		t.Errorf("%q of a hidden user", got)
	}
}
