package collect

import (
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// links are the Ethernet links that are expected: those that UMD found whenever a
// program opened the boards. One that a later program did not find is still
// expected: that it is missing is what a user wants to know.
type links struct {
	finder   umd.Finder
	expected map[portAt]farEnd
	resets   map[string]*resetLinks // by bus id
	renamed  map[portAt]*renames
}

// Ids of other hosts' chips become labels of metrics, and come from a file that any
// user of a device can write: they are limited.
const (
	maxChannels = 32 // of a chip
	maxRenames  = 8  // other ends that a port can have had within renameSpan
	renameSpan  = 24 * time.Hour
)

// renames counts the other ends of a port.
type renames struct {
	n     int
	since time.Time
}

// resetLinks is what is known of a device's links across its resets.
type resetLinks struct {
	heartbeat uint32
	reset     bool         // since its ports were last seen
	up        map[int]bool // the ports when they were last seen, by channel
	before    map[int]bool // those of before the last reset; nil: none was seen
}

// see notes a device as a snapshot has it, and adds to its ports what they were
// before its last reset. A reset is seen as the firmware's source sees it: by the
// device's state, or by a heartbeat that begins again.
func (r *resetLinks) see(d *model.Device) {
	beat, ok := d.Heartbeat.Get()
	r.reset = r.reset || d.State == model.StateResetting || d.State == model.StateLost || ok && beat < r.heartbeat
	if ok {
		r.heartbeat = beat
	}
	ports := d.Telemetry.Ports
	if len(ports) == 0 || d.State != model.StateOK {
		return
	}
	if r.reset && r.up != nil {
		r.before = r.up
	}
	r.reset, r.up = false, map[int]bool{}
	for i := range ports {
		p := &ports[i]
		if p.Up.Known() {
			r.up[p.Channel] = p.Up.V
		}
		if was, ok := r.before[p.Channel]; ok {
			p.UpBefore = model.Value(was)
		}
	}
}

// portAt is an Ethernet channel of a device's own chip.
type portAt struct {
	busID   string
	channel int
}

// farEnd is what is at the other end.
type farEnd struct {
	link   model.LinkEnd
	busID  string // of a LinkHere
	chip   string // its name on its board
	port   int
	remote model.RemotePort // of a LinkOutside
}

func newLinks(root hostfs.Root) links {
	return links{finder: umd.Finder{Root: root}, expected: map[portAt]farEnd{}, resets: map[string]*resetLinks{}, renamed: map[portAt]*renames{}}
}

// add tells the ports of a snapshot what is expected at their other ends. It
// looks for descriptions only where the state of ports is known at all.
func (l *links) add(s *model.Snapshot) {
	known := false
	for i := range s.Devices {
		d := &s.Devices[i]
		told := len(d.Telemetry.Ports) > 0
		known = known || told
		if told && l.resets[d.BusID] == nil {
			l.resets[d.BusID] = &resetLinks{}
		}
		if r := l.resets[d.BusID]; r != nil {
			r.see(d)
		}
	}
	if !known {
		return
	}
	l.finder.Trust = func(uid int) bool { return mayDescribe(s, uid) }
	found, _ := l.finder.Poll() // a broken one is ignored
	for _, f := range found {
		l.learn(s, f)
	}
	byBus := map[string]int{}
	for i := range s.Devices {
		byBus[s.Devices[i].BusID] = s.Devices[i].Index
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		for k := range d.Telemetry.Ports {
			p := &d.Telemetry.Ports[k]
			end, ok := l.expected[portAt{d.BusID, p.Channel}]
			if !ok {
				continue
			}
			p.Link = end.link
			if index, here := byBus[end.busID]; end.link == model.LinkHere && here {
				p.Peer = model.Port{ChipPlace: model.ChipPlace{Device: index, Name: end.chip}, Channel: end.port}
			} else {
				p.Link, p.Remote = model.LinkOutside, end.remote
			}
		}
	}
}

// learn adds the links of a description.
func (l *links) learn(s *model.Snapshot, f umd.Found) {
	places := locateChips(s, f.Descriptor)
	ends := func(e umd.End) (portAt, farEnd, bool) {
		at, ok := places[e.Chip]
		d := s.Device(at.Device)
		if !ok || d == nil || e.Channel < 0 || e.Channel >= maxChannels {
			return portAt{}, farEnd{}, false
		}
		return portAt{d.BusID, e.Channel}, farEnd{link: model.LinkHere, busID: d.BusID, chip: at.Name, port: e.Channel}, true
	}
	own := func(e umd.End) bool { // ports are those of a device's own chip
		at, ok := places[e.Chip]
		d := s.Device(at.Device)
		return ok && d != nil && at.Name == chipName(d, false)
	}
	for _, link := range f.Descriptor.Links {
		for i := range link {
			near, _, here := ends(link[i])
			_, far, there := ends(link[1-i])
			switch {
			case !here || !own(link[i]):
			case there:
				l.expected[near] = far
			default:
				l.expected[near] = farEnd{link: model.LinkOutside}
			}
		}
	}
	for _, link := range f.Descriptor.Outside {
		if near, _, here := ends(link.End); here && own(link.End) {
			l.expected[near] = farEnd{link: model.LinkOutside, remote: l.allowed(near, remotePort(f.Descriptor, link), s.Time)}
		}
	}
}

// allowed is the other end of a port as a description names it; not known where
// descriptions name too many.
func (l *links) allowed(at portAt, remote model.RemotePort, now time.Time) model.RemotePort {
	if remote == (model.RemotePort{}) || remote == l.expected[at].remote {
		return remote
	}
	if remote.Channel < 0 || remote.Channel >= maxChannels {
		return model.RemotePort{}
	}
	r := l.renamed[at]
	if r == nil || now.Sub(r.since) >= renameSpan {
		r = &renames{since: now}
		l.renamed[at] = r
	}
	if r.n++; r.n > maxRenames {
		return model.RemotePort{}
	}
	return remote
}
