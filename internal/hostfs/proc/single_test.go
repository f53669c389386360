package proc

import "context"

// These read a single process in a sweep of its own; the product reads all
// processes of a sweep together.

func check(r *Reader, pid, device int) (Hold, []int) {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return HoldUnknown, nil
	}
	defer proc.Close()
	r.StartSweep()
	r.descriptors.startSweep(r.root)
	return r.checkHold(proc, pid, device)
}

func holders(ctx context.Context, r *Reader) (holderScan, error) {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return holderScan{}, err
	}
	defer proc.Close()
	r.descriptors.startSweep(r.root)
	return r.holders(ctx, proc)
}

func mapsOf(r *Reader, pid int) ([]Mapping, error) {
	p, err := r.Process(pid)
	if err != nil {
		return nil, err
	}
	return r.Maps(p)
}

func environ(r *Reader, pid int, keep func(string) bool) (map[string]string, error) {
	p, err := r.Process(pid)
	if err != nil {
		return nil, err
	}
	return r.Environ(p, keep)
}

func fdinfo(r *Reader, pid, fd int) (fdInfo, error) {
	p, err := r.Process(pid)
	if err != nil {
		return fdInfo{}, err
	}
	return r.readFDInfo(p, fd)
}
