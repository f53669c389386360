package uprobe

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"strings"

	"github.com/ttmon/ttmon/internal/source/metalabi"
)

// sites are the kinds of events that the functions stand for, by the names that
// internal/source/metalabi has for them.
var sites = map[string]kind{
	"allocator_made": atAllocator, "allocator_gone": allocatorGone, "manager_dram": atDRAMManager, "manager_l1": atL1Manager,
	"list_made": listMade, "manager_ask": atAsk, "list_take": taken, "list_deallocate": freed, "list_clear": cleared,
	"list_shrink": shrunk, "list_reset": resized, "provider_old": providerMade, "provider_gone": providerGone, "record": recorded,
	"program_layout": atProgram, "program_gone": programGone, "cb_mark": cbMarked, "cb_track": cbTracked,
	"list_statistics": noRoom, "clash_thrown": clashed, "beyond_l1_thrown": atBeyondL1, "trace_thrown": traceRefused,
	"buffer":  atBuffer,
	"work_on": workOn, "work_on_old": workOnOld, "work_off": workOff, "work_off_old": workOffOld,
	"queue_made": queueMade, "sub_devices_made": subDevicesMade, "sub_devices_loaded": subDevicesLoaded,
	"enqueued": hostEnqueue, "replayed": hostReplay, "replayed_list": hostReplayList, "finish": hostFinish, "event_wait": hostEvent, "queue_gone": hostQueueGone,
	"work_pages": atPages, "work_pages_const": atPagesConst, "work_record": atPage,
}

// function is one that is watched, by the beginning of its mangled name.
type function struct {
	site   kind
	prefix string
	need   metalabi.Use
}

// symbols are those that are watched.
var symbols = func() (list []function) {
	for _, f := range metalabi.Followed() {
		if f.Probe != metalabi.Unused {
			list = append(list, function{sites[f.Name], f.Prefix, f.Probe})
		}
	}
	return list
}()

// probe is a place in a file where a symbol is watched.
type probe struct {
	site   kind
	offset uint64 // in the file
	need   metalabi.Use
	size   field // atBuffer: where a buffer has its size
	work   profiler
}

// cookie is what the kernel's part gets with each hit; see COOKIE_POINTER and
// COOKIE_TICKS there.
func (p *probe) cookie() uint64 {
	if p.site.ofPages() {
		return uint64(p.site) | uint64(p.work.ticks)<<16 | uint64(p.work.table)<<32
	}
	return uint64(p.site) | uint64(p.size.pointer)<<16 | uint64(p.size.offset)<<32
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
	all, err := f.wanted(prefixes, elf.STT_FUNC)
	if err != nil {
		return nil, err
	}
	size, sized := f.bufferSize(all)
	stubs, err := f.stubs(all)
	if err != nil {
		return nil, err
	}
	for _, want := range symbols {
		if want.need == metalabi.Called || want.site == atBuffer && !sized {
			continue
		}
		s, err := the(want.prefix, all)
		if err != nil {
			return nil, err
		}
		if s == nil && want.need == metalabi.Required {
			return nil, &symbolError{want.prefix}
		}
		if s == nil {
			continue
		}
		if want.site.ofHost() {
			probes = append(probes, f.hostProbes(s, &want)...)
			continue
		}
		at := s.address
		if stub, ok := stubs[at]; ok {
			at = stub
		}
		offset, err := f.site(at, want.prefix)
		if err != nil && want.need == metalabi.Required {
			return nil, err
		}
		if err == nil {
			p := probe{site: want.site, offset: offset, need: want.need}
			if p.site == atBuffer {
				p.size = size
			}
			probes = append(probes, p)
			if p.site == queueMade {
				probes = append(probes, probe{site: hostQueue, offset: offset, need: metalabi.OnDemand})
			}
		}
	}
	placeProfiler(probes, all)
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
	code := make([]byte, 16)
	n, offset, err := f.readCode(code, address)
	if n < 4 {
		return 0, fmt.Errorf("reading the function %s: %w", function, err)
	}
	skip, ok := entry(code[:n])
	if !ok {
		return 0, &siteError{function}
	}
	return offset + skip, nil
}

// readCode reads up to len(code) bytes of code at an address, and returns where
// in the file they are.
func (f *elfFile) readCode(code []byte, address uint64) (n int, offset uint64, err error) {
	for _, p := range f.segments {
		if p.code && address >= p.address && address-p.address < p.bytes {
			offset = address - p.address + p.offset
			n, err = f.r.ReadAt(code, int64(offset))
			return n, offset, err
		}
	}
	return 0, 0, badELF("there is no code at address %#x", address)
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
