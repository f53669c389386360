package recording

import "encoding/binary"

// cursor reads numbers and bytes; what is not there makes it bad.
type cursor struct {
	b   []byte
	bad bool
}

func (r *cursor) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *cursor) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *cursor) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	x := r.b[:n]
	r.b = r.b[n:]
	return x
}
