package kmd

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// openersFrom is the first driver with a list of openers.
const openersFrom = "2.5.0"

// readOpeners returns the driver's list of openers: a pid for each open file
// description, the newest first. Pids may repeat, may be 0 (not visible from
// our pid namespace) and may name processes that have exited since.
func (d *device) readOpeners() model.Reading[[]int] {
	c := d.content(pidsFile)
	if d.queued[pidsFile] < 0 {
		c.why = "the driver keeps no list of openers"
		if v, _ := ParseVersion(openersFrom); d.driver.Less(v) && d.driver != (Version{}) {
			c.why = "driver " + d.driver.String() + " keeps no list of openers, " + openersFrom + " does"
		}
	}
	d.lostFile(pidsFile, c.status)
	if c.status != model.Known {
		return model.Missing[[]int](c.status, c.why)
	}
	pids, err := parseOpeners([]byte(c.text))
	if err != nil {
		return model.Missing[[]int](model.Implausible, err.Error())
	}
	return model.Value(pids)
}

// addProcessList reads the list that proposals have, a file with a line for each process,
// its pid first, where the driver does not keep the list of openers.
func (d *device) addProcessList() {
	if d.once = false; d.openers.Status != model.Absent || !d.hasMemory || d.model.State != model.StateOK { // this read has no deadline
		return
	}
	b, err := d.root.Read(d.dirs[inClass]+"/"+processDir, pidsBytes)
	if err != nil {
		return
	}
	first := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		word, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		first = append(append(first, word...), '\n')
	}
	pids, err := parseOpeners(first)
	if err == nil && len(b) < pidsBytes { // part of it would pass for all of it
		d.openers, d.once = model.Value(pids), true
	}
}

// openFDs reads how often the module is in use. It is not needed for a driver
// with lists, and from 2.10 on exported buffers count as well.
func (r *Reader) openFDs(found []Found) model.Reading[int] {
	for i := range found {
		if found[i].Openers.Status == model.Absent {
			text, err := r.root.ReadString("/sys/module/tenstorrent/refcnt")
			if err != nil {
				return model.Missing[int](hostfs.Status(err), err.Error())
			}
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return model.Missing[int](model.Implausible, "the kernel printed "+strconv.Quote(clip(text))+" for the module's use count")
			}
			return model.Value(n)
		}
	}
	return model.Missing[int](model.Absent, "the driver lists its openers")
}

// parseOpeners reads the lines of a pids file. A list that fills the buffer may
// be truncated: it is rejected, since part of it would pass for all of it. The
// holders of the device are then read from /proc.
func parseOpeners(b []byte) ([]int, error) {
	if len(b) >= pidsBytes-1 { // the last line break is cut off already
		return nil, fmt.Errorf("the driver's list of openers is longer than %d bytes", pidsBytes)
	}
	var pids []int
	for line := range bytes.FieldsSeq(b) {
		n, err := strconv.ParseInt(string(line), 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("the driver's list of openers has the line %q", clip(string(line)))
		}
		pids = append(pids, int(n))
	}
	return pids, nil
}
