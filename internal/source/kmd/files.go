package kmd

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// file is a kept descriptor, or the error of opening it.
type file struct {
	fd  int // 0 is not open: it is stdin
	err error
}

// The files of a device: the attributes, the counters, the list of openers.
const (
	firstCounter = len(attrs)
	pidsFile     = firstCounter + len(counterFiles)
	numFiles     = pidsFile + 1
)

const (
	valueBytes = 64       // no telemetry file holds more
	cpuBytes   = 1024     // local_cpulist of a large host
	pidsBytes  = 16 << 10 // some two thousand openers
)

// dirChanges is how often the directory changes, at most, from one file of a
// device to the next.
const dirChanges = 10

// deviceBytes is the size that all files of a device need in a batch. Most of it
// is never used, and memory that is not used is never there.
func deviceBytes() int {
	return numFiles*valueBytes + cpuBytes + pidsBytes + hostfs.NamedBytes(numFiles, dirChanges)
}

// closeFiles drops the descriptors, so that the next read opens them again.
func (d *device) closeFiles() {
	var fds [numFiles]int
	n := 0
	for i := range d.files {
		if d.files[i].fd > 0 {
			fds[n] = d.files[i].fd
			n++
		}
		d.files[i] = file{}
	}
	hostfs.CloseAll(fds[:n])
	d.dirs[inHwmon] = ""
	d.statics, d.absentAt, d.firstReadAt = time.Time{}, time.Time{}, time.Time{}
}

func isStatic(i int) bool { return i < len(attrs) && attrs[i].role == static }

// reachesChip reports whether reading file i reads a register of the chip.
func reachesChip(i int) bool {
	return i < pidsFile && (i >= firstCounter || attrs[i].in == inClass || attrs[i].in == inHwmon)
}

// openedByReader reports whether the reader of the batch opens file i, and not
// we: a static file, and in the first round every file. Such a file costs us no
// descriptor, and no system call. Most commands have only a first round, and a
// process of several threads pays for a larger table of descriptors with
// milliseconds of waiting (the kernel lets all CPUs pass a quiescent state), at
// 64, 128, 256 …: a host of 32 chips would wait longer for that than for its
// files. The reader has one thread, and one file open at a time.
func (d *device) openedByReader(i int) bool {
	return d.files[i].fd == 0 && (d.rounds == 1 || isStatic(i))
}

// addNamed adds the read of file i to the batch, whose reader opens it.
func (d *device) addNamed(i int) int {
	dir, name := d.path(i)
	n, err := -1, error(unix.ENOENT)
	if dir != "" {
		n, err = d.batch.AddFile(d.root, dir, name, d.size(i))
	}
	d.files[i].err = err
	return n
}

// noteUnopened marks the files that the reader could not open as not read.
func (d *device) noteUnopened() {
	for i, n := range d.queued {
		if n >= 0 && d.batch.Unopened(n) {
			_, d.files[i].err = d.batch.Result(n)
			d.queued[i] = -1
		}
	}
}

func (d *device) size(i int) int {
	switch {
	case i == pidsFile:
		return pidsBytes
	case i < len(attrs) && attrs[i].file == "local_cpulist":
		return cpuBytes
	}
	return valueBytes
}

// open opens file i, unless it is open already.
func (d *device) open(i int, dirs *openDirs) {
	f := &d.files[i]
	if f.fd > 0 {
		return
	}
	dir, name := d.path(i)
	if f.fd, f.err = dirs.open(d.root, dir, name); f.err != nil {
		f.fd = 0
	}
}

// path is where file i is: a directory, "" if it is not there, and a name.
func (d *device) path(i int) (dir, name string) {
	switch {
	case i == pidsFile:
		return d.dirs[inProc], "pids"
	case i >= firstCounter:
		return d.dirs[inCounters], counterFiles[i-firstCounter].file
	}
	return d.dirs[attrs[i].in], attrs[i].file
}

// openDirs keeps the last directories open while the files of a device are
// opened: resolving 47 full paths takes most of the time of doing so.
type openDirs struct {
	list [numDirectories]openDir
	n    int
}

type openDir struct {
	path string
	dir  hostfs.Dir
	err  error
}

func (o *openDirs) open(root hostfs.Root, path, name string) (int, error) {
	if path == "" {
		return 0, unix.ENOENT
	}
	for _, d := range o.list[:o.n] {
		if d.path == path {
			if d.err != nil {
				return 0, d.err
			}
			return d.dir.Open(name)
		}
	}
	d := openDir{path: path}
	d.dir, d.err = root.OpenDir(path)
	o.list[o.n] = d
	o.n++
	return o.open(root, path, name)
}

func (o *openDirs) close() {
	for _, d := range o.list[:o.n] {
		if d.err == nil {
			d.dir.Close()
		}
	}
}

// findHwmon finds the device's hwmon directory if it is unknown or gone: its
// number is arbitrary, and changes when the driver binds again.
func (d *device) findHwmon() {
	if d.dirs[inHwmon] != "" && d.root.Exists(d.dirs[inHwmon]) {
		return
	}
	d.dirs[inHwmon] = ""
	path := d.dirs[inPCI] + "/hwmon"
	parent, err := d.root.OpenDir(path)
	if err != nil {
		return
	}
	defer parent.Close()
	var entries [512]byte // there is one, as a rule
	_ = parent.Each(entries[:], func(name []byte) bool {
		if !isOurHwmon(parent, string(name)) {
			return true
		}
		d.dirs[inHwmon] = path + "/" + string(name)
		return false
	})
}

// isOurHwmon reports whether a directory of hwmon is one of the driver.
func isOurHwmon(parent hostfs.Dir, name string) bool {
	var line [16]byte
	n, err := parent.Read(name+"/name", line[:])
	s := strings.TrimRight(string(line[:n]), "\n")
	return err == nil && (s == string(model.Wormhole) || s == string(model.Blackhole))
}
