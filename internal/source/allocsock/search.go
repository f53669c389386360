package allocsock

// startSearch starts the search for the next header.
func (d *decoder) startSearch() (stop bool) {
	d.mode = lost
	d.rejected++
	return false
}

// searchLen is how many bytes are searched before the caller checks the time.
const searchLen = 8 << 10

// search skips to the next valid header. The first byte does not count: it
// begins what was rejected.
func (d *decoder) search(b []byte, end ending) (n int, req request, stop bool) {
	for i := 1; i+headerLen <= len(b); i++ {
		if i > searchLen {
			d.skipped += searchLen
			return searchLen, request{kind: flush}, true // and on from there
		}
		switch {
		case b[i]-1 >= msgDumpKernels:
		case plausible(b[i:]) && d.mayBeOwn(framePID(b[i:])) && allZero(b[i+headerLen:min(i+size72, len(b))]):
			d.mode = start
		case cbFramed(b[i:]) && d.matches(int32(le32(b[i+24:]))):
			d.mode = records
		}
		if d.mode != lost {
			d.skipped += uint64(i)
			return i, request{}, false
		}
	}
	n = max(len(b)-headerLen, 0)
	if end == eof {
		n = len(b)
	}
	d.skipped += uint64(n)
	return n, request{}, true
}

// mayBeOwn reports whether a message with this pid may be the client's: 0 in
// queries; otherwise its pid, if we know that.
func (d *decoder) mayBeOwn(pid int32) bool {
	return pid == 0 || d.matches(pid) || d.peer == 0 && d.sentPID == 0
}

// matches reports whether pid is the client's, on the host or as it sent it.
func (d *decoder) matches(pid int32) bool {
	return pid != 0 && (pid == d.peer || pid == d.sentPID)
}
