package collect

import (
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// assignPods joins what the kubelet says with a snapshot: devices learn which pods they were given to, and processes in pods, of which
// their cgroup tells only the uid, the names of theirs.
func assignPods(s *model.Snapshot, claims []model.PodClaim) {
	for _, c := range claims {
		for i := range s.Devices {
			if d := &s.Devices[i]; claimed(d, c.Names) {
				d.Pods = append(d.Pods, c)
			}
		}
	}
	for i := range s.Processes {
		if c := &s.Processes[i].Container; c.Pod != "" && c.PodName == "" {
			c.Namespace, c.PodName = podOf(s, &s.Processes[i])
		}
	}
}

// claimed reports whether one of a claim's names is a device's. Device plugins and
// DRA drivers are free in what they call a device: by its bus address, serial
// number, index or node, alone or at the end of a longer name.
func claimed(d *model.Device, names []string) bool {
	for _, name := range names {
		if d.Named(name) {
			return true
		}
		if i := strings.LastIndexAny(name, "=/-_"); i >= 0 && d.Named(name[i+1:]) {
			return true
		}
	}
	return false
}

// podOf is the pod of a process by the devices that it has open: the one pod that
// was given them all. Where several were given one, it cannot be told.
func podOf(s *model.Snapshot, p *model.Process) (namespace, name string) {
	for i := range p.Devices {
		d := s.Device(p.Devices[i].Device)
		if d == nil || len(d.Pods) == 0 {
			return "", ""
		}
		for _, c := range d.Pods {
			if name != "" && (c.Namespace != namespace || c.Pod != name) {
				return "", ""
			}
			namespace, name = c.Namespace, c.Pod
		}
	}
	return namespace, name
}
