package uprobe

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// symbols are the functions that are watched, by the beginning of their
// mangled names: the types of later parameters change between releases.
var symbols = [...]struct {
	site   kind
	prefix string
	need   need
}{
	{atAllocator, "_ZN2tt8tt_metal13AllocatorImplC2E", optional},
	{allocatorGone, "_ZN2tt8tt_metal13AllocatorImplD2Ev", optional},
	{atDRAMManager, "_ZN2tt8tt_metal11BankManagerC1ERKNS0_10BufferTypeERKSt6vectorIlSaIlEEm", required},
	{atL1Manager, "_ZN2tt8tt_metal11BankManagerC1ERKNS0_10BufferTypeERKSt13unordered_map", required},
	{listMade, "_ZN2tt8tt_metal9allocator11FreeListOptC1EmmmmNS2_12SearchPolicyE", required},
	{atAsk, "_ZN2tt8tt_metal11BankManager15allocate_bufferEmmb", required},
	{taken, "_ZN2tt8tt_metal9allocator11FreeListOpt17allocate_in_blockEmmm", required},
	{freed, "_ZN2tt8tt_metal9allocator11FreeListOpt10deallocateEm", required},
	{cleared, "_ZN2tt8tt_metal9allocator11FreeListOpt5clearEv", required},
	{shrunk, "_ZN2tt8tt_metal9allocator11FreeListOpt11shrink_sizeEmb", required},
	{resized, "_ZN2tt8tt_metal9allocator11FreeListOpt10reset_sizeEv", required},
	{providerMade, "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emi", optional},
	{providerGone, "_ZN2tt8tt_metal25SharedMemoryStatsProviderD1Ev", optional},
	{recorded, "_ZN2tt8tt_metal25SharedMemoryStatsProvider17record_allocationEimNS0_13ShmBufferTypeEj", learning},
	{atProgram, "_ZN2tt8tt_metal6detail11ProgramImpl25allocate_circular_buffersEPKNS0_7IDeviceE", optional},
	{programGone, "_ZN2tt8tt_metal6detail11ProgramImpl27deallocate_circular_buffersEv", optional},
	{cbMarked, "_ZN2tt8tt_metal6detail11ProgramImpl23CircularBufferAllocator12mark_addressEmmm", optional},
	{cbTracked, "_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERKNS0_12CoreRangeSetEmmb", optional},
}

// need says what a symbol is for.
type need int

const (
	required need = iota // without it nothing can be told
	optional             // without it less is known
	learning             // hit once per chip and buffer: watched only until it is known which chips an allocator stands for
)

// probe is a place in a file where a symbol is watched.
type probe struct {
	site   kind
	offset uint64 // in the file
	need   need
}

// symbolError names a function that a library does not have.
type symbolError struct{ symbol string }

func (e *symbolError) Error() string {
	return "it has no function " + e.symbol
}

// siteError says that a function begins in a way that cannot be watched.
type siteError struct{ symbol string }

func (e *siteError) Error() string {
	return "the function " + e.symbol + " begins with an instruction that the kernel cannot watch"
}

// findProbes finds the symbols in the table that the dynamic linker uses, which
// stripped libraries have too. The file may be anybody's: any error means only
// that it is not watched.
func findProbes(r io.ReaderAt) (probes []probe, err error) {
	f, err := openELF(r)
	if err != nil {
		return nil, err
	}
	prefixes := make([]string, len(symbols))
	for i := range symbols {
		prefixes[i] = symbols[i].prefix
	}
	all, err := f.wanted(prefixes)
	if err != nil {
		return nil, err
	}
	for _, want := range symbols {
		s, err := the(want.prefix, all)
		if err != nil {
			return nil, err
		}
		if s == nil && want.need == required {
			return nil, &symbolError{want.prefix}
		}
		if s == nil {
			continue
		}
		offset, err := f.site(s.address, want.prefix)
		if err != nil && want.need == required {
			return nil, err
		}
		if err == nil {
			probes = append(probes, probe{site: want.site, offset: offset, need: want.need})
		}
	}
	return probes, nil
}

// the finds the one function whose name begins with prefix; nil: there is none.
func the(prefix string, all []symbol) (found *symbol, err error) {
	for i := range all {
		s := &all[i]
		switch {
		case !strings.HasPrefix(s.name, prefix):
		case found != nil && (found.name != s.name || found.address != s.address):
			return nil, fmt.Errorf("several functions could be %s", prefix)
		default:
			found = s
		}
	}
	return found, nil
}

// site returns the offset in the file at which a function is watched: its
// first instruction, or the one behind it if that is a landing pad.
func (f *elfFile) site(address uint64, function string) (uint64, error) {
	for _, p := range f.segments {
		if !p.code || address < p.address || address-p.address >= p.bytes {
			continue
		}
		offset := address - p.address + p.offset
		code := make([]byte, 16)
		n, err := f.r.ReadAt(code, int64(offset))
		if n < 4 {
			return 0, fmt.Errorf("reading the function %s: %w", function, err)
		}
		skip, ok := entry(code[:n])
		if !ok {
			return 0, &siteError{function}
		}
		return offset + skip, nil
	}
	return 0, fmt.Errorf("the function %s is not in the file", function)
}

// entryAMD64 looks at the first instructions of a function. `endbr64` would be
// single-stepped, which costs ten times what the `push` behind it does, so it
// is skipped; arguments are still in their registers there. A nop with a
// segment prefix is refused by the kernel when the library is mapped, without
// any error.
func entryAMD64(code []byte) (skip uint64, ok bool) {
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) {
		skip = 4
	}
	at := code[skip:]
	return skip, !bytes.HasPrefix(at, []byte{0x66, 0x2e}) && !bytes.HasPrefix(at, []byte{0x2e})
}
