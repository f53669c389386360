package uprobe

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// What is read of a library at most. Any user can put any file under its name,
// so nothing is kept but one piece of it at a time: tables are read in pieces,
// and sections, which may be compressed and which the dynamic linker does not
// use either, not at all. The library of 0.81.1 has 23,000 symbols and 2.3 MB
// of names; a build without optimisation has ten times as many.
const (
	maxSegments   = 64
	maxDynamic    = 1024 // entries
	maxBuckets    = 1 << 20
	maxSymbols    = 1 << 20
	maxNameBytes  = 64 << 20
	maxNameLength = 4 << 10
	maxFound      = 1024 // names with one of the prefixes
	pieceBytes    = 256 << 10
)

// elfError says why a file is not a library that can be read.
type elfError struct{ what string }

func (e *elfError) Error() string { return "not a library that can be read: " + e.what }

func badELF(format string, args ...any) error { return &elfError{fmt.Sprintf(format, args...)} }

// elfFile is a library, as the dynamic linker sees it.
type elfFile struct {
	r        io.ReaderAt
	segments []segment // those that are loaded
	// Addresses of the dynamic linker's tables; 0: there is none.
	symbols, names, gnuHash, oldHash uint64
	nameBytes                        uint64
	// The functions that it calls by way of the dynamic linker, and the size of the table.
	calls, callBytes uint64
}

// segment is a part of the file, and where it is in memory.
type segment struct {
	offset, address, bytes uint64
	code                   bool
}

// symbol is a function that the library offers.
type symbol struct {
	name    string
	address uint64
	size    uint64
	number  uint32 // in the table of symbols
}

const (
	headerBytes  = 64
	segmentBytes = 56
	dynamicBytes = 16
	symbolBytes  = 24
)

// openELF reads the headers of a library for this machine, or of a program of
// the other kinds.
func openELF(r io.ReaderAt, kinds ...elf.Type) (*elfFile, error) {
	var h [headerBytes]byte
	if err := readFull(r, h[:], 0); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if string(h[:4]) != elf.ELFMAG || h[4] != byte(elf.ELFCLASS64) || h[5] != byte(elf.ELFDATA2LSB) {
		return nil, badELF("no ELF file of 64 bits begins with % x", h[:6])
	}
	if kind, of := elf.Type(le.Uint16(h[16:])), elf.Machine(le.Uint16(h[18:])); kind != elf.ET_DYN && !slices.Contains(kinds, kind) || of != machine {
		return nil, badELF("it is %v for %v", kind, of)
	}
	at, size, count := le.Uint64(h[32:]), le.Uint16(h[54:]), le.Uint16(h[56:])
	if size != segmentBytes || count == 0 || count > maxSegments {
		return nil, badELF("%d segments of %d bytes", count, size)
	}
	f := &elfFile{r: r}
	return f, f.readSegments(at, make([]byte, int(count)*segmentBytes))
}

func (f *elfFile) readSegments(at uint64, b []byte) error {
	if err := readFull(f.r, b, at); err != nil {
		return err
	}
	var dynamic segment
	for le := binary.LittleEndian; len(b) > 0; b = b[segmentBytes:] {
		s := segment{offset: le.Uint64(b[8:]), address: le.Uint64(b[16:]), bytes: le.Uint64(b[32:])}
		s.code = elf.ProgFlag(le.Uint32(b[4:]))&elf.PF_X != 0
		if s.offset > math.MaxInt64 || s.bytes > math.MaxInt64-s.offset || s.address > math.MaxUint64-s.bytes {
			return badELF("a segment of %d bytes at %#x", s.bytes, s.offset)
		}
		switch elf.ProgType(le.Uint32(b)) {
		case elf.PT_LOAD:
			f.segments = append(f.segments, s)
		case elf.PT_DYNAMIC:
			dynamic = s
		}
	}
	return f.readDynamic(dynamic)
}

// readDynamic finds the tables of the dynamic linker.
func (f *elfFile) readDynamic(s segment) error {
	if s.bytes == 0 || s.bytes%dynamicBytes != 0 || s.bytes > maxDynamic*dynamicBytes {
		return badELF("a dynamic segment of %d bytes", s.bytes)
	}
	b := make([]byte, s.bytes)
	if err := readFull(f.r, b, s.offset); err != nil {
		return err
	}
	to := map[elf.DynTag]*uint64{
		elf.DT_SYMTAB: &f.symbols, elf.DT_STRTAB: &f.names, elf.DT_STRSZ: &f.nameBytes,
		elf.DT_GNU_HASH: &f.gnuHash, elf.DT_HASH: &f.oldHash, elf.DT_JMPREL: &f.calls, elf.DT_PLTRELSZ: &f.callBytes,
	}
	for ; len(b) > 0; b = b[dynamicBytes:] {
		tag := elf.DynTag(binary.LittleEndian.Uint64(b))
		if tag == elf.DT_NULL {
			break
		}
		if value := to[tag]; value != nil {
			*value = binary.LittleEndian.Uint64(b[8:])
		}
	}
	if f.symbols == 0 || f.names == 0 || f.nameBytes == 0 || f.nameBytes > maxNameBytes {
		return badELF("no table of symbols, or %d bytes of names", f.nameBytes)
	}
	return nil
}

// offset finds where in the file n bytes of memory are.
func (f *elfFile) offset(address, n uint64) (uint64, error) {
	for _, s := range f.segments {
		if address >= s.address && address-s.address < s.bytes && n <= s.bytes-(address-s.address) {
			return address - s.address + s.offset, nil
		}
	}
	return 0, badELF("%d bytes at address %#x are not in the file", n, address)
}

// count finds the number of symbols, which only the tables for looking them up
// tell.
func (f *elfFile) count() (uint64, error) {
	n, err := uint64(0), error(nil)
	switch {
	case f.gnuHash != 0:
		n, err = f.countGNU()
	case f.oldHash != 0:
		n, err = f.countOld()
	default:
		return 0, badELF("no hash table")
	}
	if err == nil && (n == 0 || n > maxSymbols) {
		err = badELF("%d symbols", n)
	}
	return n, err
}

func (f *elfFile) countOld() (uint64, error) {
	at, err := f.offset(f.oldHash, 8)
	if err != nil {
		return 0, err
	}
	var b [8]byte
	err = readFull(f.r, b[:], at)
	return uint64(binary.LittleEndian.Uint32(b[4:])), err
}

// countGNU goes to the last chain of a table: buckets have the first symbol of
// each chain, and the last one of a chain has its lowest bit set.
func (f *elfFile) countGNU() (uint64, error) {
	at, err := f.offset(f.gnuHash, 16)
	if err != nil {
		return 0, err
	}
	var h [16]byte
	if err := readFull(f.r, h[:], at); err != nil {
		return 0, err
	}
	le := binary.LittleEndian
	buckets, first, bloom := uint64(le.Uint32(h[:])), uint64(le.Uint32(h[4:])), uint64(le.Uint32(h[8:]))
	if buckets == 0 || buckets > maxBuckets || bloom > maxBuckets {
		return 0, badELF("a hash table of %d buckets", buckets)
	}
	last, begin := uint64(0), f.gnuHash+16+8*bloom
	err = f.pieces(begin, 4*buckets, 4, func(_ uint64, b []byte) error {
		for ; len(b) >= 4; b = b[4:] {
			last = max(last, uint64(le.Uint32(b)))
		}
		return nil
	})
	if err != nil || last < first {
		return last, err
	}
	if last >= maxSymbols {
		return 0, badELF("%d symbols", last)
	}
	// The chain's end, one piece after the other: its length is not recorded.
	for {
		at, err := f.offset(begin+4*buckets+4*(last-first), 4)
		if err != nil {
			return 0, err
		}
		var b [4 << 10]byte
		n, err := f.r.ReadAt(b[:], int64(at))
		if n < 4 {
			return 0, badELF("its hash table is cut off: %v", err)
		}
		for at := 0; at+4 <= n; at += 4 {
			last++
			if le.Uint32(b[at:])&1 != 0 {
				return last, nil
			}
		}
		if last >= maxSymbols {
			return 0, badELF("more than %d symbols", maxSymbols)
		}
	}
}

// pieces calls do for one piece after the other of a table in memory. A piece
// is a multiple of unit, and is do's until it returns.
func (f *elfFile) pieces(address, bytes, unit uint64, do func(at uint64, b []byte) error) error {
	offset, err := f.offset(address, bytes)
	if err != nil {
		return err
	}
	buffer := make([]byte, min(bytes, pieceBytes/unit*unit))
	for at := uint64(0); at < bytes; {
		b := buffer[:min(uint64(len(buffer)), bytes-at)]
		if err := readFull(f.r, b, offset+at); err != nil {
			return err
		}
		if err := do(at, b); err != nil {
			return err
		}
		at += uint64(len(b))
	}
	return nil
}

// wanted finds the functions, or the variables, whose names begin with one of the
// prefixes.
func (f *elfFile) wanted(prefixes []string, of elf.SymType) ([]symbol, error) {
	names, err := f.findNames(prefixes)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	count, err := f.count()
	if err != nil {
		return nil, err
	}
	var out []symbol
	le := binary.LittleEndian
	err = f.pieces(f.symbols, count*symbolBytes, symbolBytes, func(at uint64, b []byte) error {
		for ; len(b) >= symbolBytes; b, at = b[symbolBytes:], at+symbolBytes {
			name, ok := names[le.Uint32(b)]
			if !ok || elf.ST_TYPE(b[4]) != of || elf.SectionIndex(le.Uint16(b[6:])) == elf.SHN_UNDEF {
				continue
			}
			if len(out) == maxFound {
				return badELF("more than %d symbols of those names", maxFound)
			}
			out = append(out, symbol{name, le.Uint64(b[8:]), le.Uint64(b[16:]), uint32(at / symbolBytes)})
		}
		return nil
	})
	return out, err
}

// findNames goes through the names once, and returns those that begin with one
// of the prefixes, by their offset in the table.
func (f *elfFile) findNames(prefixes []string) (map[uint32]string, error) {
	common, heads := commonPrefix(prefixes), commonPrefixes(prefixes)
	found := map[uint32]string{}
	var window []byte // what was left of the piece before, and this one
	err := f.pieces(f.names, f.nameBytes, 1, func(at uint64, b []byte) error {
		from := at - uint64(len(window))
		window = append(window, b...)
		end := len(window) // before it names are whole
		if at+uint64(len(b)) < f.nameBytes {
			end = max(0, end-maxNameLength)
		}
		for i := 0; i < end; i++ {
			k := bytes.Index(window[i:], common)
			if k < 0 || i+k >= end {
				break
			}
			i += k
			if !hasAny(window[i:], heads) {
				continue
			}
			name, ok := nameAt(window[i:], prefixes)
			if !ok {
				continue
			}
			if len(found) == maxFound {
				return badELF("more than %d names of those functions", maxFound)
			}
			found[uint32(from)+uint32(i)] = name
		}
		window = append(window[:0], window[end:]...)
		return nil
	})
	return found, err
}

// nameAt is the name at the start of b, if it has one of the prefixes.
func nameAt(b []byte, prefixes []string) (string, bool) {
	for _, p := range prefixes {
		if len(b) < len(p) || string(b[:len(p)]) != p {
			continue
		}
		end := bytes.IndexByte(b[:min(len(b), maxNameLength)], 0)
		if end < 0 {
			return "", false
		}
		return string(b[:end]), true
	}
	return "", false
}

func commonPrefix(list []string) []byte {
	common := list[0]
	for _, s := range list[1:] {
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	return []byte(common)
}

// commonPrefixes are those of functions that are const, and of those that are
// not: few names have one of them, and many have what both begin with.
func commonPrefixes(list []string) (heads [][]byte) {
	of := map[bool][]string{}
	for _, s := range list {
		isConst := strings.HasPrefix(s, "_ZNK")
		of[isConst] = append(of[isConst], s)
	}
	for _, same := range of {
		heads = append(heads, commonPrefix(same))
	}
	return heads
}

func hasAny(b []byte, heads [][]byte) bool {
	for _, h := range heads {
		if bytes.HasPrefix(b, h) {
			return true
		}
	}
	return false
}

// readFull reads all of b; a file that ends before is not a library.
func readFull(r io.ReaderAt, b []byte, at uint64) error {
	if at > math.MaxInt64-uint64(len(b)) {
		return badELF("%d bytes at %#x", len(b), at)
	}
	n, err := r.ReadAt(b, int64(at))
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return badELF("it ends before %#x", at+uint64(len(b)))
	default:
		return err
	}
}
