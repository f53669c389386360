package kmd

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// lostKept is how long a device that left the bus is still shown, as lost.
const lostKept = 10 * time.Minute

// Reader reads all devices of a host repeatedly. It keeps descriptors open and
// the earlier samples that rates and states need. It is not safe for concurrent
// use.
type Reader struct {
	root    hostfs.Root
	devices map[string]*device // by BDF
	batches []*groupBatch      // to be used again
	found   []Found            // of the last Sweep
	places  map[string]place   // by name in classDir
	grace   time.Duration      // usually grace

	unbound unbound

	restored map[string]heartbeat // of another Reader, by BDF
}

// New returns a reader of the host below root. It reads nothing yet.
func New(root hostfs.Root) *Reader {
	return &Reader{root: root, devices: map[string]*device{}, places: map[string]place{}, grace: grace}
}

// Sweep is one reading of the host.
type Sweep struct {
	Loaded  bool // the kernel module is there
	Driver  model.Reading[string]
	Version Version  // Driver, parsed; zero if unknown
	Unbound []string // Tenstorrent functions on the bus without a driver
	// OpenFDs is how many descriptors of all devices are open, where the driver
	// keeps no lists: then it is the module's reference count.
	OpenFDs model.Reading[int]
	Found   []Found // by kernel index; until the next reading
}

// Found is one device of a sweep.
type Found struct {
	Device  model.Device
	Openers model.Reading[[]int] // pids; see readOpeners
	Once    bool                 // a process stands in it once, however often it has the device open
	Memory  Memory
}

// Read reads every device until the deadline. Those that have not answered are
// in the result, marked.
func (r *Reader) Read(deadline time.Time) Sweep {
	s := r.readModule()
	r.sample(s.Version, deadline)
	s.Unbound = r.unbound.list(r.root, r.boundTo(s.Loaded), time.Now())
	all := slices.SortedFunc(maps.Values(r.devices), func(a, b *device) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.bdf, b.bdf))
	})
	r.found = slices.Grow(r.found[:0], len(all))[:len(all)]
	for i, d := range all {
		f := &r.found[i]
		d.publish(&f.Device)
		f.Openers, f.Once, f.Memory = d.openers, d.once, d.readMemory()
		d.traffic.markShown()
	}
	s.Found = r.found
	s.OpenFDs = r.openFDs(s.Found)
	return s
}

// Sample reads every device between two calls of Read, so that counters which
// wrap, and a heartbeat that stops, are not missed.
func (r *Reader) Sample(deadline time.Time) { r.sample(r.readModule().Version, deadline) }

// Openers reads the openers of the devices again: pids by kernel index, for
// devices with a list.
func (r *Reader) Openers(deadline time.Time) map[int][]int {
	r.Sample(deadline)
	list := map[int][]int{}
	for _, d := range r.devices {
		if pids, ok := d.openers.Get(); ok {
			list[d.index] = pids
		}
	}
	return list
}

func (r *Reader) sample(driver Version, deadline time.Time) {
	r.discover(driver)
	todo := r.present()
	for range 2 { // twice where a device was found to have moved
		r.readAll(todo, deadline)
		now := time.Now()
		todo = slices.DeleteFunc(todo, func(d *device) bool { return !d.finish(now) })
		if len(todo) == 0 {
			break
		}
		r.discover(driver)
		todo = slices.DeleteFunc(todo, func(d *device) bool { return !d.goneAt.IsZero() })
	}
}

// Close releases all descriptors. A reader that still waits for a chip ends as soon as
// the driver lets it go: it does not read the rest of its files, one wait after the
// other, for results that are not wanted any more.
func (r *Reader) Close() {
	for _, d := range r.devices {
		d.closeFiles()
	}
	clear(r.devices)
	for _, b := range r.batches {
		b.Kill()
		b.Close()
	}
	r.batches = nil
}

func (r *Reader) present() []*device {
	var list []*device
	for _, d := range r.devices {
		if d.goneAt.IsZero() {
			list = append(list, d)
		}
	}
	return list
}

// boundTo identifies the devices that the driver has now.
func (r *Reader) boundTo(loaded bool) string {
	var names []string
	for _, d := range r.present() {
		names = append(names, d.bdf)
	}
	slices.Sort(names)
	return strconv.FormatBool(loaded) + " " + strings.Join(names, " ")
}

// readModule reads what the kernel says about the driver itself.
func (r *Reader) readModule() Sweep {
	s := Sweep{Loaded: r.root.Exists("/sys/module/tenstorrent")}
	version, err := r.root.ReadString("/sys/module/tenstorrent/version")
	switch {
	case err == nil:
		s.Driver = model.Value(version)
		s.Version, _ = ParseVersion(version)
	case !s.Loaded:
		s.Driver = model.Missing[string](model.Absent, "the driver is not loaded")
	default:
		s.Driver = model.Missing[string](hostfs.Status(err), "the driver has no version file")
	}
	return s
}

// discover compares the class directory with the known devices. Without the
// directory there are none; if it cannot be read, nothing changes.
func (r *Reader) discover(driver Version) {
	there := map[string]bool{}
	class, err := r.root.OpenDir(classDir)
	if err == nil {
		err = class.Each(make([]byte, 4096), func(name []byte) bool {
			index, ok := deviceIndex(name)
			if !ok {
				return true
			}
			if at, ok := r.resolve(class, string(name)); ok {
				there[at.bdf] = true
				r.addDevice(index, at.dir, at.bdf, driver)
			}
			return true
		})
		class.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return // it could not be read (no free descriptor, say): that says nothing about the devices
	}
	now := time.Now()
	for bdf, d := range r.devices {
		if there[bdf] {
			continue
		}
		if d.goneAt.IsZero() {
			d.goneAt, d.gone = now, r.whyGone(bdf)
			d.closeFiles()
			d.openers = model.Missing[[]int](model.Lost, "the device is gone")
		}
		if d.gone == model.Unbound { // the module may be on its way out
			d.gone = r.whyGone(bdf)
		}
		if now.Sub(d.goneAt) > lostKept {
			delete(r.devices, bdf)
		}
	}
}

// whyGone returns why a device is no longer in the class directory.
func (r *Reader) whyGone(bdf string) model.Cause {
	switch {
	case !r.root.Exists("/sys/module/tenstorrent"):
		return model.DriverUnloaded
	case r.root.Exists("/sys/bus/pci/devices/" + bdf):
		return model.Unbound
	}
	return model.OffBus
}

// addDevice adds or updates a device of the class directory.
func (r *Reader) addDevice(index int, dir, bdf string, driver Version) {
	d := r.devices[bdf]
	if d == nil {
		d = &device{root: r.root, bdf: bdf}
		r.devices[bdf] = d
	}
	if d.index != index || !d.goneAt.IsZero() || d.dirs[inClass] != dir {
		d.moveTo(index, dir)
	}
	if h, ok := r.restored[bdf]; ok {
		d.beat = h
		delete(r.restored, bdf)
	}
	d.driver = driver
}

// classDir has a link for each device, tenstorrent!N.
const classDir = "/sys/class/tenstorrent"

// deviceIndex is the number of a device by its name in classDir.
func deviceIndex(name []byte) (index int, ok bool) {
	number, ok := bytes.CutPrefix(name, []byte("tenstorrent!"))
	if !ok {
		return 0, false
	}
	index, err := strconv.Atoi(string(number))
	return index, err == nil && index >= 0
}

// place is where a link of classDir leads.
type place struct {
	target   string // of the link, as it is
	dir, bdf string
}

// resolve follows a class link to the device's own directory, which lies in
// that of its PCI function: …/<bdf>/tenstorrent/tenstorrent!N.
func (r *Reader) resolve(class hostfs.Dir, name string) (at place, ok bool) {
	var target [512]byte
	n, err := class.Readlink(name, target[:])
	if err != nil || n == len(target) {
		return place{}, false
	}
	at = r.places[name]
	if at.target != string(target[:n]) { // it is the same from sweep to sweep
		at.target = string(target[:n])
		at.dir = at.target
		if !path.IsAbs(at.dir) {
			at.dir = path.Join(classDir, at.dir)
		}
		at.bdf = path.Base(path.Dir(path.Dir(at.dir)))
		r.places[name] = at
	}
	return at, len(at.bdf) >= len("0000:00:00.0")
}

// publish puts the device where a snapshot takes it from.
func (d *device) publish(to *model.Device) {
	*to = d.model
	if !d.goneAt.IsZero() {
		d.publishGone(to)
	}
}

// publishGone leaves what is known of a device that is gone.
func (d *device) publishGone(gone *model.Device) {
	*gone = model.Device{
		Index: d.index, Path: d.model.Path, BusID: d.bdf, Arch: d.model.Arch, PCIID: d.model.PCIID,
		Board: d.model.Board, Serial: d.model.Serial, ASICID: d.model.ASICID,
		State: model.StateLost, StateReason: model.StateReason{Cause: d.gone, Since: d.goneAt},
		ReadAt: d.model.ReadAt,
	}
	for i := range attrs {
		if f := attrs[i].file; f != "tt_card_type" && f != "tt_serial" && f != "tt_asic_id" && attrs[i].in != inPCI {
			attrs[i].store(gone, content{status: model.Lost})
		}
	}
	lost := model.Missing[float64](model.Lost, "")
	gone.HeartbeatAge, gone.HeartbeatRate = lost, lost
	d.traffic.setRates(&gone.PCIe, lost, lost)
}
