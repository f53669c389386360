package words

import (
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Reach says whose a process is: the user with the full name, the job, the terminal
// or the address the session came from, the working directory. It is
// empty where nothing but the number of the user is known.
func Reach(p *model.Process) string {
	r := &p.Reach
	if !p.User.Known() || *r == (model.Reach{}) {
		return ""
	}
	who := Escape(p.User.V)
	if r.FullName != "" && r.FullName != p.User.V {
		who += " (" + Escape(r.FullName) + ")"
	}
	list := []string{who}
	if job := Job(p); job != Nothing {
		if r.JobName != "" {
			job += " " + Escape(r.JobName)
		}
		list = append(list, job)
	}
	switch {
	case r.TTY != "" && r.SSH != "":
		list = append(list, "at "+Escape(r.TTY)+", by ssh from "+Escape(r.SSH))
	case r.SSH != "":
		list = append(list, "by ssh from "+Escape(r.SSH))
	case r.TTY != "":
		list = append(list, "at "+Escape(r.TTY))
	}
	if r.Dir != "" {
		list = append(list, "directory "+Escape(r.Dir))
	}
	return strings.Join(list, ", ")
}
