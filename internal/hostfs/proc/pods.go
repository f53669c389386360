package proc

import (
	"strings"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// podNames gives names to Kubernetes pod uids. A cgroup path holds only the
// uid; the kubelet keeps a directory <namespace>_<name>_<uid> for the logs of
// each pod of the node, which anyone may list. Nothing inside a container is
// read: its files may be anything, slow or hostile.
type podNames struct {
	root  hostfs.Root
	stamp stamp
	byUID map[string]pod
}

type pod struct{ namespace, name string }

const podLogs = "/var/log/pods"

func (p *podNames) find(uid string) pod {
	s, err := stampOf(p.root, podLogs)
	if err != nil {
		return pod{}
	}
	if s != p.stamp {
		names, err := p.root.AppendNames(nil, podLogs)
		if err != nil {
			return pod{}
		}
		p.stamp, p.byUID = s, map[string]pod{}
		for _, name := range names {
			// None of the three parts can contain an underscore.
			if parts := strings.Split(name, "_"); len(parts) == 3 {
				p.byUID[parts[2]] = pod{namespace: parts[0], name: parts[1]}
			}
		}
	}
	return p.byUID[uid]
}
