package prom

import (
	"maps"
	"slices"
	"sort"
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
)

// workloadKey is to whom memory on a device belongs.
type workloadKey struct {
	device                                    int
	namespace, pod, container, slurmJob, unit string
}

// workload is what its processes hold on a device together.
type workload struct {
	processes int
	sums      [model.NumPools]model.Sum
}

// known lists the bus ids that are remembered, in order.
func (w *Walker) known() []string { return slices.Sorted(maps.Keys(w.devices)) }

// holders emits what workloads and processes hold.
func (w *Walker) holders(s *model.Snapshot, emit Emit) {
	clear(w.groups)
	w.shown = 0
	if w.opt.MaxWorkloads > 0 {
		w.workloads(s, emit)
	}
	if w.opt.Processes > 0 {
		w.processes(s, emit)
	}
}

func (w *Walker) workloads(s *model.Snapshot, emit Emit) {
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.State != model.Running {
			continue
		}
		for j := range p.Devices {
			u := &p.Devices[j]
			k := workloadKey{u.Device, p.Container.Namespace, pod(p), p.Container.ID, p.SlurmJob, p.SystemdUnit}
			if k.container != "" {
				k.unit = "" // the runtime's scope says nothing that the container does not
			}
			g := w.groups[k]
			if g == nil {
				if len(w.groups) >= w.opt.MaxWorkloads {
					w.dropped++
					continue
				}
				g = &workload{}
				w.groups[k] = g
			}
			g.add(u)
		}
	}
	keys := slices.Collect(maps.Keys(w.groups))
	sort.Slice(keys, func(i, j int) bool { return keys[i].less(&keys[j]) })
	for _, k := range keys {
		w.buf = w.workloadLabels(s, &k, "")
		emit(workloads, w.buf, float64(w.groups[k].processes))
	}
	for _, k := range keys {
		g := w.groups[k]
		for _, p := range model.Pools() {
			if sum := g.sums[p].Bytes(); sum.Known() {
				w.buf = w.workloadLabels(s, &k, p.String())
				n, _, _ := sum.Best()
				emit(workloadUsed, w.buf, float64(n))
			}
		}
	}
	for _, k := range keys {
		g := w.groups[k]
		for _, p := range model.Pools() {
			if sum := g.sums[p].Bytes(); sum.Known() {
				w.buf = w.workloadLabels(s, &k, p.String())
				emit(workloadBound, w.buf, boundOf(sum))
			}
		}
	}
}

// pod is the name of a process's pod, or its uid where no name is known.
func pod(p *model.Process) string {
	if p.Container.PodName != "" {
		return p.Container.PodName
	}
	return p.Container.Pod
}

func (g *workload) add(u *model.DeviceUse) {
	g.processes++
	for _, p := range model.Pools() {
		g.sums[p].Add(u.Memory[p])
	}
}

func (k *workloadKey) less(o *workloadKey) bool {
	if k.device != o.device {
		return k.device < o.device
	}
	a := [...]string{k.namespace, k.pod, k.container, k.slurmJob, k.unit}
	b := [...]string{o.namespace, o.pod, o.container, o.slurmJob, o.unit}
	return slices.Compare(a[:], b[:]) < 0
}

func (w *Walker) workloadLabels(s *model.Snapshot, k *workloadKey, pool string) Labels {
	b := w.deviceLabels(s, k.device)
	b = label(b, "namespace", k.namespace)
	b = label(b, "pod", k.pod)
	b = label(b, "container", k.container)
	b = label(b, "slurm_job", k.slurmJob)
	b = label(b, "unit", k.unit)
	return label(b, "pool", pool)
}

// deviceLabels begins the labels of something on a device.
func (w *Walker) deviceLabels(s *model.Snapshot, index int) Labels {
	if d := s.Device(index); d != nil {
		return append(w.buf[:0], w.devices[d.BusID].labels...)
	}
	return label(w.buf[:0], "device", "none") // a chip that is behind none of this host's devices
}

func (w *Walker) processes(s *model.Snapshot, emit Emit) {
	w.shown = min(w.opt.Processes, len(s.Processes))
	w.dropped += float64(len(s.Processes) - w.shown)
	each := func(f func(p *model.Process, u *model.DeviceUse)) {
		for i := range w.shown {
			for j := range s.Processes[i].Devices {
				f(&s.Processes[i], &s.Processes[i].Devices[j])
			}
		}
	}
	labels := func(p *model.Process, u *model.DeviceUse, pool model.Pool) Labels {
		b := w.deviceLabels(s, u.Device)
		b = label(b, "pid", strconv.Itoa(p.PID))
		if name, ok := p.Name.Get(); ok {
			b = label(b, "process", name)
		}
		if user, ok := p.User.Get(); ok {
			b = label(b, "user", user)
		}
		return label(b, "pool", pool.String())
	}
	each(func(p *model.Process, u *model.DeviceUse) {
		for _, pool := range model.Pools() {
			if n, _, ok := u.Memory[pool].Best(); ok && p.PID != 0 {
				w.buf = labels(p, u, pool)
				emit(processUsed, w.buf, float64(n))
			}
		}
	})
	each(func(p *model.Process, u *model.DeviceUse) {
		for _, pool := range model.Pools() {
			if u.Memory[pool].Known() && p.PID != 0 {
				w.buf = labels(p, u, pool)
				emit(processBound, w.buf, boundOf(u.Memory[pool]))
			}
		}
	})
}
