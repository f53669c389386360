package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

const (
	fileMagic   = "TTMONREC"
	version     = 1
	fileHeader  = 24
	blockMagic  = 0x42525454 // "TTRB"
	blockHeader = 40
	flagKey     = 1
	flagNoEvent = 2

	maxPayload = 64 << 20
	maxRaw     = 256 << 20
)

// Errors that a file can be refused with.
var (
	ErrForeign = errors.New("not a recording of ttmon")
	ErrDamaged = errors.New("damaged recording")
)

// damage is an ErrDamaged that says where.
type damage string

func (d damage) Error() string { return ErrDamaged.Error() + ": " + string(d) }
func (d damage) Unwrap() error { return ErrDamaged }

// VersionError is the error of a file in a form that is not known here.
type VersionError struct{ Version uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("a recording of version %d, known is %d: use a newer ttmon", e.Version, version)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendFileHeader(dst []byte, id uint64) []byte {
	dst = append(dst, fileMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, fileHeader)
	return binary.LittleEndian.AppendUint64(dst, id)
}

// parseFileHeader returns where the first block is.
func parseFileHeader(b []byte) (int64, error) {
	if len(b) < fileHeader || string(b[:8]) != fileMagic {
		return 0, ErrForeign
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return 0, &VersionError{v}
	}
	size := binary.LittleEndian.Uint32(b[12:])
	if size < fileHeader || size > 1<<16 {
		return 0, fmt.Errorf("%w: a header of %d bytes", ErrDamaged, size)
	}
	return int64(size), nil
}

// block is where a block lies and what its header says.
type block struct {
	offset      int64 // of the header
	payload     int   // compressed bytes
	raw         int
	first, last int64 // Unix ns
	key         bool
	noEvent     bool // no event is in it; recordings of older releases do not say
	gap         bool // what was before it is damaged
}

func (b *block) end() int64 { return b.offset + blockHeader + int64(b.payload) }

// parseBlock reads a header; whether it is true the checksum tells.
func parseBlock(h []byte, at int64) (b block, ok bool) {
	b = block{
		offset: at, payload: int(binary.LittleEndian.Uint32(h[8:])), raw: int(binary.LittleEndian.Uint32(h[12:])),
		first: int64(binary.LittleEndian.Uint64(h[16:])), last: int64(binary.LittleEndian.Uint64(h[24:])), key: binary.LittleEndian.Uint32(h[4:])&flagKey != 0, noEvent: binary.LittleEndian.Uint32(h[4:])&flagNoEvent != 0,
	}
	return b, binary.LittleEndian.Uint32(h) == blockMagic && b.payload <= maxPayload && b.raw <= maxRaw && b.first <= b.last
}

func checksum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[:32], castagnoli), castagnoli, payload)
}

// packer compresses payloads into blocks.
type packer struct {
	enc *zstd.Encoder
	n   uint32
}

func newPacker() (*packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(512<<10), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("compressing a recording: %w", err)
	}
	return &packer{enc: enc}, nil
}

// pack appends a whole block to dst.
func (p *packer) pack(dst, raw []byte, flags uint32, first, last int64) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, blockHeader)...)
	dst = p.enc.EncodeAll(raw, dst)
	h, payload := dst[at:at+blockHeader], dst[at+blockHeader:]
	binary.LittleEndian.PutUint32(h, blockMagic)
	binary.LittleEndian.PutUint32(h[4:], flags)
	binary.LittleEndian.PutUint32(h[8:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(raw)))
	binary.LittleEndian.PutUint64(h[16:], uint64(first))
	binary.LittleEndian.PutUint64(h[24:], uint64(last))
	binary.LittleEndian.PutUint32(h[32:], checksum(h, payload))
	binary.LittleEndian.PutUint32(h[36:], p.n)
	p.n++
	return dst
}

// unpack decompresses a block.
func unpack(dec *zstd.Decoder, whole []byte, b block) ([]byte, error) {
	raw, err := dec.DecodeAll(whole[blockHeader:], make([]byte, 0, min(b.raw, 1<<20)))
	if err != nil || len(raw) != b.raw {
		return nil, fmt.Errorf("%w: the block at %d cannot be decompressed", ErrDamaged, b.offset)
	}
	return raw, nil
}
