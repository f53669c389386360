package allocsock

import (
	"encoding/binary"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/model"
)

// Message types of the old protocol.
const (
	msgAlloc              = 1
	msgFree               = 2
	msgQuery              = 3
	msgResponse           = 4
	msgDumpRemaining      = 5
	msgDeviceInfoQuery    = 6
	msgDeviceInfoResponse = 7
	msgCBAlloc            = 8
	msgCBFree             = 9
	msgKernelLoad         = 10
	msgKernelUnload       = 11
	msgDumpKernels        = 12
)

// headerLen is the part that the AllocMessage of every version begins with:
//
//	0 type u8, 3 zeros   4 device i32   8 size u64   16 buffer_type u8, 3 zeros
//	20 process i32      24 buffer u64  32 timestamp u64
const headerLen = 40

// Sizes of an AllocMessage, by version. Behind the header come the fields of
// replies, which clients send as zeros.
const (
	size72  = 72
	size112 = 112
	size128 = 128
	size144 = 144
	// size120 is no version: a published snippet packs two words too many.
	// Its author meant 112.
	size120 = 120
)

// Sizes of the other dialects.
const (
	statsRequestLen = 24 // realtime_monitor.py
	statsRecordLen  = 48 // what it wants for each device
	cbRecordLen     = 32 // instrumented_helpers.hpp
)

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func frameDevice(f []byte) int32 { return int32(le32(f[4:])) }
func framePID(f []byte) int32    { return int32(le32(f[20:])) }
func frameID(f []byte) uint64    { return le64(f[24:]) }

// framed reports whether f can begin an AllocMessage: a known type, and zeros
// where every client pads with zeros. It needs 24 bytes.
func framed(f []byte) bool {
	return f[0]-1 < msgDumpKernels && le32(f)>>8 == 0 && le32(f[16:])>>8 == 0
}

// maxPID is the kernel's own limit.
const maxPID = 1 << 22

// plausible is framed, with all fields in range: it distinguishes a message
// from noise when the start of messages has been lost. It needs a header.
func plausible(f []byte) bool {
	if !framed(f) {
		return false
	}
	dev, pid := frameDevice(f), framePID(f)
	isQuery := f[0] == msgQuery || f[0] == msgDeviceInfoQuery || f[0] == msgDumpRemaining || f[0] == msgDumpKernels
	return dev >= -1 && dev <= ledger.MaxDevice && le64(f[8:]) <= ledger.MaxSize && f[16] <= 8 &&
		(pid > 0 || pid == 0 && isQuery) && pid <= maxPID
}

// cbFramed reports whether f can be a record of instrumented_helpers.hpp:
//
//	0 type u8 (8 to 11), 3 zeros   4 device i32   8 size u64   16 id u64
//	24 process i32, 4 zeros
func cbFramed(f []byte) bool {
	return f[0] >= msgCBAlloc && f[0] <= msgKernelUnload && le32(f)>>8 == 0 && le32(f[28:]) == 0
}

func allZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if le64(b) != 0 {
			return false
		}
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// ops of the message types that change the ledger; 0 for the others.
var ops = [msgDumpKernels + 1]ledger.Op{
	msgAlloc: ledger.Alloc, msgFree: ledger.Free,
	msgCBAlloc: ledger.CBAlloc, msgCBFree: ledger.CBFree,
	msgKernelLoad: ledger.KernelLoad, msgKernelUnload: ledger.KernelUnload,
}

// DeviceInfo is what a DEVICE_INFO reply says about one chip.
type DeviceInfo struct {
	Arch           uint32 // 1 Grayskull, 2 Wormhole_B0, 3 Blackhole; 0 unknown
	DRAMBytes      uint64
	L1Bytes        uint64
	DRAMChannels   uint32
	DRAMPerChannel uint32 // saturates: the field is too small for 4 GiB
	L1PerCore      uint32
}

// ArchNumber is the number of an architecture in a DEVICE_INFO reply.
func ArchNumber(a model.Arch) uint32 {
	switch a {
	case model.Wormhole:
		return 2
	case model.Blackhole:
		return 3
	default:
		return 0
	}
}

// infoOffset is where the device fields begin; 72-byte messages have none.
func infoOffset(size int) int {
	if size == size112 {
		return 72
	}
	return 88
}

// appendQueryReply appends the answer to a QUERY, of exactly size bytes.
func appendQueryReply(dst []byte, size int, u *ledger.Use) []byte {
	n := len(dst)
	dst = append(dst, make([]byte, size)...)
	f := dst[n:]
	f[0] = msgResponse
	binary.LittleEndian.PutUint32(f[4:], uint32(u.Device))
	pools := []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace}
	if size >= size128 {
		pools = append(pools, model.CB, model.Kernel)
	}
	for i, p := range pools {
		binary.LittleEndian.PutUint64(f[headerLen+8*i:], u.Bytes[p])
	}
	return dst
}

// appendInfoReply appends the answer to a DEVICE_INFO_QUERY: for device -1 the
// number of devices, otherwise what the device is, or is_available 0.
func appendInfoReply(dst []byte, size int, device int32, devices []DeviceInfo) []byte {
	n := len(dst)
	dst = append(dst, make([]byte, size)...)
	f := dst[n:]
	f[0] = msgDeviceInfoResponse
	binary.LittleEndian.PutUint32(f[4:], uint32(device))
	if size < size112 {
		return dst
	}
	f = f[infoOffset(size):]
	switch {
	case device == -1:
		binary.LittleEndian.PutUint32(f[32:], 1)
		binary.LittleEndian.PutUint32(f[36:], uint32(len(devices)))
	case device >= 0 && int(device) < len(devices):
		d := devices[device]
		binary.LittleEndian.PutUint64(f[0:], d.DRAMBytes)
		binary.LittleEndian.PutUint64(f[8:], d.L1Bytes)
		binary.LittleEndian.PutUint32(f[16:], d.Arch)
		binary.LittleEndian.PutUint32(f[20:], d.DRAMChannels)
		binary.LittleEndian.PutUint32(f[24:], d.DRAMPerChannel)
		binary.LittleEndian.PutUint32(f[28:], d.L1PerCore)
		binary.LittleEndian.PutUint32(f[32:], 1)
	}
	return dst
}

// appendStatsRecord appends what realtime_monitor.py reads for one device.
func appendStatsRecord(dst []byte, u *ledger.Use) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(u.Device))
	dst = binary.LittleEndian.AppendUint64(dst, u.Count())
	for _, p := range []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace} {
		dst = binary.LittleEndian.AppendUint64(dst, u.Bytes[p])
	}
	return dst
}
