package kmd

import (
	"errors"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// How often missing files are tried again: on Wormhole the driver creates files
// up to two minutes after it has bound the chip. Files that are missing after
// that are tried less often.
const (
	retryAbsent     = 2 * time.Second
	retryNeverThere = 20 * time.Second
	settling        = 3 * time.Minute
)

// How long static files are cached. New firmware appears after a reset, which
// is noticed; this is for changes that are not.
const staticAge = time.Minute

// device is the state of a device between two reads of it.
type device struct {
	root   hostfs.Root
	bdf    string
	index  int
	driver Version
	dirs   [numDirectories]string // "" where there is none

	files       [numFiles]file
	due         [numFiles]bool   // to be read in this round
	ones        [len(attrs)]bool // the file last had what a dead chip gives
	batch       *groupBatch      // with this round's reads, shared with other devices
	queued      [numFiles]int    // number of the file's read in the batch, -1 if none
	resting     content          // of the files that are left out of the round
	started     time.Time        // of the round
	rounds      int              // started so far
	statics     time.Time        // when static files were last read
	firstReadAt time.Time        // at its current path, and since its last reset
	absentAt    time.Time        // when missing files were last tried
	stuck       int              // sweeps in a row that found a read of it stuck
	late        bool             // the stuck read may only be slow
	goneAt      time.Time        // when it left the class directory; zero while it is there
	gone        model.Cause      // and why
	hasMemory   bool             // the driver has files of memory or processes

	model   model.Device // what the last good reads gave
	openers model.Reading[[]int]
	once    bool // see Found
	traffic traffic
	beat    heartbeat
	health  health
}

// moveTo sets the path of the device, which a hot-plug may change.
func (d *device) moveTo(index int, classDir string) {
	d.closeFiles()
	d.index, d.goneAt = index, time.Time{}
	d.traffic.at, d.beat, d.health = time.Time{}, heartbeat{}, health{}
	pci := path.Dir(path.Dir(classDir))
	d.dirs = [numDirectories]string{
		inClass: classDir, inPCI: pci, inParent: path.Dir(pci),
		inCounters: classDir + "/" + counterDir, inProc: "/proc/driver/tenstorrent/" + strconv.Itoa(index),
	}
	d.model = model.Device{
		Index: index, Path: "/dev/tenstorrent/" + strconv.Itoa(index), BusID: d.bdf, Arch: model.UnknownArch,
	}
}

// queue adds the reads of the files that are due to a batch.
func (d *device) queue(batch *groupBatch, now time.Time) {
	d.batch, d.started = batch, now
	d.rounds++
	d.resting = d.restReason()
	retry := d.retry(now)
	if retry {
		d.findHwmon()
		d.absentAt = now
		d.hasMemory = d.offersMemory()
	}
	withStatics := now.Sub(d.statics) >= staticAge
	if withStatics {
		d.statics = now
	}
	var open openDirs
	defer open.close()
	for i := range d.files {
		d.queued[i] = -1
		d.due[i] = !isStatic(i) || withStatics || retry && d.files[i].err != nil
		if !d.due[i] || d.rests(i, now) {
			continue
		}
		d.queued[i] = d.add(i, retry, &open)
	}
}

// add adds the read of file i to the batch and returns its number, or -1.
func (d *device) add(i int, retry bool, open *openDirs) int {
	f := &d.files[i]
	if f.fd == 0 && f.err != nil && !retry {
		return -1
	}
	if d.openedByReader(i) {
		return d.addNamed(i)
	}
	if d.open(i, open); f.err != nil {
		return -1
	}
	return d.batch.Add(f.fd, d.size(i))
}

// retry reports whether missing files are tried in this round.
func (d *device) retry(now time.Time) bool {
	if d.firstReadAt.IsZero() {
		d.firstReadAt = now
	}
	if now.Sub(d.firstReadAt) < settling {
		return now.Sub(d.absentAt) >= retryAbsent
	}
	return now.Sub(d.absentAt) >= retryNeverThere
}

// queueAgain adds the reads of this round to another batch: the first one is
// stuck at another device.
func (d *device) queueAgain(batch *groupBatch) {
	var open openDirs
	defer open.close()
	d.batch = batch
	for i := range d.files {
		if d.queued[i] < 0 {
			continue
		}
		d.queued[i] = d.add(i, true, &open)
	}
}

// failReads marks the files of this round as not read, because of an error of
// ours.
func (d *device) failReads(err error) {
	for i := range d.files {
		if d.queued[i] >= 0 {
			d.queued[i], d.files[i].err = -1, err
		}
	}
}

// busy reports whether reads of this device are still under way.
func (d *device) busy() bool {
	return d.batch != nil && d.batch.Reap() && d.stuckAt(numFiles) >= 0
}

// finish decodes the results of the reads. It reports whether descriptors had
// become invalid, so that the device should be read again at once.
func (d *device) finish(now time.Time) (moved bool) {
	d.noteUnopened()
	stuck := d.stuckFile()
	d.updateStuck(stuck, now)
	var seen vitals
	for i := range attrs {
		if !d.due[i] {
			continue // the last value is kept
		}
		a, c := &attrs[i], d.content(i)
		if stuck != "" && !d.late && a.role != static && a.in != inPCI {
			// What the chip said before it blocked is as old as the block.
			c = content{status: model.Hung, why: whyStuck}
		}
		moved = d.lostFile(i, c.status) || moved
		got, read := a.store(&d.model, c), d.queued[i] >= 0 && reachesChip(i)
		if c.ones {
			got = ones
		}
		d.ones[i] = got == ones
		switch {
		case a.fromFirmware():
			seen.add(c, got, read)
		case got == ones:
			seen.onesElsewhere(read)
		}
	}
	d.deadLink()
	if moved {
		d.statics = time.Time{}
	}
	s := d.counters()
	if s.ones {
		seen.onesElsewhere(d.queued[firstCounter] >= 0)
	}
	d.openers = d.readOpeners()
	d.setState(seen, stuck, now)
	d.addProcessList()
	if d.beat.restarted {
		d.traffic.at, d.firstReadAt = time.Time{}, time.Time{}
	}
	d.traffic.add(s, &d.model.PCIe)
	d.model.PCIe.Degraded = Degraded(&d.model.PCIe)
	d.model.ReadAt = d.started
	return moved
}

// deadLink drops link speeds that the kernel derived from a configuration space
// of all ones: it then prints the fastest speed that it knows, which looks
// right. The width of such a link shows that it was all ones.
func (d *device) deadLink() {
	p := &d.model.PCIe
	for _, end := range []struct {
		speed, width *model.Reading[int]
		file         int // that the width is from
	}{
		{&p.Gen, &p.Width, widthAt}, {&p.GenMax, &p.WidthMax, widthMaxAt}, {&p.SlotGenMax, &p.SlotWidthMax, slotWidthAt},
	} {
		if d.ones[end.file] {
			*end.speed = *end.width
		}
	}
}

const (
	whyStuck = "the driver has not answered the read"
	whyLate  = "the driver has not answered the read yet"
)

// stuckFile returns the telemetry file whose read has not returned, or "". The
// list of openers may take longer: a power message delays it.
func (d *device) stuckFile() string {
	i := d.stuckAt(pidsFile)
	if i < 0 {
		return ""
	}
	_, name := d.path(i)
	return name
}

// stuckAt is the first of the first n files whose read has not returned, or -1.
func (d *device) stuckAt(n int) int {
	for i := range n {
		if d.queued[i] < 0 {
			continue
		}
		if _, err := d.batch.Result(d.queued[i]); err == hostfs.ErrTimeout {
			return i
		}
	}
	return -1
}

// content is what file i held, or the reason for nothing.
func (d *device) content(i int) content {
	if d.queued[i] < 0 {
		err := d.files[i].err
		if err == nil {
			return d.resting
		}
		c := content{status: hostfs.Status(err), why: err.Error()}
		if errors.Is(err, unix.ENOENT) && i < len(attrs) {
			c.why = attrs[i].absent(d.model.Arch, d.driver)
		}
		return c
	}
	b, err := d.batch.Result(d.queued[i])
	if err == nil {
		return content{text: strings.TrimRight(string(b), "\n"), status: model.Known}
	}
	c := content{status: hostfs.Status(err)}
	switch c.status {
	case model.Hung:
		if c.why = whyStuck; d.late {
			c.status, c.why = model.Pending, whyLate
		}
	case model.Absent:
		c.why = "the driver answered: " + err.Error()
	}
	return c
}

// lostFile drops a descriptor that the driver has invalidated.
func (d *device) lostFile(i int, s model.Status) bool {
	if s != model.Lost || d.queued[i] < 0 {
		return false
	}
	if d.files[i].fd > 0 {
		unix.Close(d.files[i].fd)
	}
	d.files[i] = file{}
	if i < len(attrs) && attrs[i].in == inHwmon {
		d.dirs[inHwmon] = ""
	}
	d.absentAt, d.firstReadAt = time.Time{}, time.Time{}
	return true
}

// counters collects the sample of the PCIe counters.
func (d *device) counters() sample {
	s := sample{at: d.started, status: model.Known}
	for i := range counterFiles {
		c := d.content(firstCounter + i)
		d.lostFile(firstCounter+i, c.status)
		if c.status != model.Known {
			if c.status == model.Absent && d.queued[firstCounter+i] < 0 {
				c.why = "the driver offers no PCIe counters"
				if v, _ := ParseVersion(countersFrom); d.driver.Less(v) && d.driver != (Version{}) {
					c.why = "driver " + d.driver.String() + " offers no PCIe counters, " + countersFrom + " does"
				}
			}
			s.status, s.why, s.ones = c.status, c.why, c.ones
			return s
		}
		v := count(c.text)
		if !v.reading.Known() {
			s.status, s.why, s.ones = v.reading.Status, v.reading.Why, v.ones
			return s
		}
		s.words[i] = v.reading.V
	}
	return s
}

// Degraded compares the link with what both its ends can do, as numbers.
func Degraded(p *model.PCIe) model.Reading[bool] {
	for _, r := range []model.Reading[int]{p.Gen, p.GenMax, p.Width, p.WidthMax} {
		if !r.Known() {
			return model.As[bool](r)
		}
	}
	return model.Value(p.Gen.V < lesser(p.GenMax, p.SlotGenMax) || p.Width.V < lesser(p.WidthMax, p.SlotWidthMax))
}

func lesser(own, slot model.Reading[int]) int {
	if v, ok := slot.Get(); ok {
		return min(own.V, v)
	}
	return own.V
}
