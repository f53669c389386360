package words

import (
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Job says to whom a process belongs, by the first that is known: Slurm job,
// Kubernetes pod, container, systemd unit. It is Nothing on a bare host.
func Job(p *model.Process) string {
	c := &p.Container
	switch {
	case p.SlurmJob != "":
		return "slurm " + Escape(p.SlurmJob)
	case c.PodName != "":
		return "pod " + namespaced(c, c.PodName)
	case c.Pod != "":
		return "pod " + namespaced(c, short(c.Pod))
	case c.ID != "" && c.Runtime != "":
		return Escape(c.Runtime) + " " + Escape(short(c.ID))
	case c.ID != "":
		return Escape(short(c.ID))
	case p.SystemdUnit != "":
		return Escape(strings.TrimSuffix(p.SystemdUnit, ".service"))
	default:
		return Nothing
	}
}

func namespaced(c *model.Container, pod string) string {
	if c.Namespace != "" {
		return Escape(c.Namespace) + "/" + Escape(pod)
	}
	return Escape(pod)
}

// short is what people type of a long id: twelve digits of a container's, the
// first group of a pod's.
func short(id string) string {
	if head, _, ok := strings.Cut(id, "-"); ok && len(head) == 8 {
		return head
	}
	if len(id) > 12 {
		return id[:12]
	}
	return id
}

// Command is what a process runs, as far as it is known: command line, name,
// or what is known instead of them.
func Command(p *model.Process) string {
	switch {
	case p.State == model.Hidden:
		return "(cannot be seen from here)"
	case p.State == model.Exited:
		return "(exited, descriptor still open)"
	case p.Cmdline.Known() && strings.TrimSpace(p.Cmdline.V) != "":
		return Escape(p.Cmdline.V)
	case p.Name.Known():
		return "[" + Escape(p.Name.V) + "]"
	default:
		return "(" + Missing(p.Cmdline.Status) + ")"
	}
}
