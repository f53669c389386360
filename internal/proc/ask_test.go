package proc

import "context"

// What the tests ask about a single process; the product asks for all of a
// sweep together.

func check(r *Reader, pid, device int) (holding, []int) {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return mayNotLook, nil
	}
	defer proc.Close()
	r.Begin()
	r.descriptors.begin(r.root)
	return r.check(proc, pid, device)
}

func holders(ctx context.Context, r *Reader) (holderScan, error) {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return holderScan{}, err
	}
	defer proc.Close()
	r.descriptors.begin(r.root)
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
	return r.fdinfo(p, fd)
}
