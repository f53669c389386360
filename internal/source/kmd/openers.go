package kmd

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
)

// Openers is the driver's list of who has a device open: one entry for each
// open file description, the newest first.
type Openers struct {
	// PIDs may repeat, may be 0 (not visible from our pid namespace) and may
	// name processes that have exited since.
	PIDs   []int
	Status model.Status // Known if PIDs holds; Absent on drivers before 2.5
	Why    string
}

const openersFrom = "2.5.0"

func (d *device) readOpeners() Openers {
	if d.queued[pidsFile] < 0 {
		c := d.content(pidsFile)
		o := Openers{Status: c.status, Why: "the driver keeps no list of openers"}
		if v, _ := ParseVersion(openersFrom); d.driver.Less(v) && d.driver != (Version{}) {
			o.Why = "driver " + d.driver.String() + " keeps no list of openers, " + openersFrom + " does"
		}
		return o
	}
	c := d.content(pidsFile)
	d.lostFile(pidsFile, c.status)
	if c.status != model.Known {
		return Openers{Status: c.status, Why: c.why}
	}
	pids, err := parseOpeners([]byte(c.text))
	if err != nil {
		return Openers{Status: model.Implausible, Why: err.Error()}
	}
	return Openers{PIDs: pids, Status: model.Known}
}

// parseOpeners reads the lines of a pids file. The last one may have been cut
// by the size of the buffer; then it is left out.
func parseOpeners(b []byte) ([]int, error) {
	if len(b) >= pidsBytes-1 {
		b = b[:bytes.LastIndexByte(b, '\n')+1]
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
