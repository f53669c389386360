/* The Python lines that a thread is in, read from its own frames as they lie
 * in memory: while the allocator runs the GIL is not held, so nothing of
 * Python may be called, but a thread's own frames do not change under it.
 *
 * Where things lie is known for CPython 3.10 and 3.12 (for which ttnn has
 * wheels), 3.11, and 3.13 and 3.14, which tell themselves. Of other versions, and
 * of those without a GIL, nothing is read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "state.h"

/* What a frame was read from, to know it again: code objects die, and others
 * take their addresses. */
struct frame_origin {
	uint64_t filename, qualname, linetable;
	uint64_t filename_end, qualname_end; /* their last bytes */
	int64_t lines;                       /* length of the line table */
	uint32_t first_line;
};

/* Offsets in CPython's structures. */
struct layout {
	uint16_t cframe;        /* thread state -> C frame; 0: there is none in between */
	uint16_t current_frame; /* -> innermost frame, from there */
	uint16_t previous, code, instruction, owner;
	uint16_t filename, qualname, linetable, first_line, instructions;
	uint8_t newer; /* 3.11+: interpreter frames and the newer line table */
	uint8_t ascii, wide; /* str -> its characters, in ASCII or wider */
};

static const struct layout known_310 = {
	.current_frame = 24, .previous = 24, .code = 32, .instruction = 96,
	.filename = 104, .qualname = 112, .linetable = 120, .first_line = 40,
	.ascii = 48, .wide = 72,
};
static const struct layout known_311 = {
	.cframe = 56, .current_frame = 8, .previous = 48, .code = 32, .instruction = 56, .owner = 69,
	.filename = 112, .qualname = 128, .linetable = 136, .first_line = 72, .instructions = 184, .newer = 1,
	.ascii = 48, .wide = 72,
};
static const struct layout known_312 = {
	.cframe = 56, .current_frame = 0, .previous = 8, .code = 0, .instruction = 56, .owner = 70,
	.filename = 112, .qualname = 128, .linetable = 136, .first_line = 68, .instructions = 192, .newer = 1,
	.ascii = 40, .wide = 56,
};

/* From here on, the C interpreter's own frames, between Python and a C function
 * that called Python again. */
enum { OWNED_BY_C = 3 };

/* 3.14 keeps a bit of its own in references to objects, which are aligned. */
enum { REFERENCE_BITS = 7 };

enum { DEPTH = 64, TEXT = 1024 };

static struct {
	_Atomic int found; /* 1: searched */
	void *(*thread_state)(void);
	struct layout at;
} python;

static uint64_t u64(const void *base, uint64_t offset)
{
	uint64_t v;
	memcpy(&v, (const char *)base + offset, sizeof v);
	return v;
}

static const void *pointer(const void *base, uint64_t offset) { return (const void *)(uintptr_t)u64(base, offset); }

static int32_t i32(const void *base, uint64_t offset)
{
	int32_t v;
	memcpy(&v, (const char *)base + offset, sizeof v);
	return v;
}

/* _Py_DebugOffsets of CPython 3.13 and 3.14: numbers of 8 bytes, by position.
 * The parts that lie before ours have grown. */
static bool layout_told(struct layout *at)
{
	const char *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
	if (!runtime || memcmp(runtime, "xdebugpy", 8) != 0 || u64(runtime, 16) != 0)
		return false;
	int interpreter, frame;
	switch (u64(runtime, 8) >> 16) {
	case 0x030d: interpreter = 13; frame = 6; break;
	case 0x030e: interpreter = 16; frame = 8; break;
	default: return false;
	}
	const int thread_at = 3 + 3 + interpreter, frame_at = thread_at + 9, code_at = frame_at + frame;
#define FIELD(n) ((uint16_t)u64(runtime, 8 * (uint64_t)(n)))
	*at = (struct layout){
		.current_frame = FIELD(thread_at + 4),
		.previous = FIELD(frame_at + 1), .code = FIELD(frame_at + 2), .instruction = FIELD(frame_at + 3), .owner = FIELD(frame_at + 5),
		.filename = FIELD(code_at + 1), .qualname = FIELD(code_at + 3), .linetable = FIELD(code_at + 4), .first_line = FIELD(code_at + 5),
		.instructions = FIELD(code_at + 9), .newer = 1, .ascii = 40, .wide = 56,
	};
#undef FIELD
	return true;
}

void python_find(void)
{
	if (atomic_load_explicit(&python.found, memory_order_acquire) || !dlsym)
		return;
	void *(*thread_state)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
	if (!thread_state || !version)
		return; /* it may come later */
	const char *v = version();
	struct layout at = {0};
	bool known = true;
	if (strncmp(v, "3.10.", 5) == 0)
		at = known_310;
	else if (strncmp(v, "3.11.", 5) == 0)
		at = known_311;
	else if (strncmp(v, "3.12.", 5) == 0)
		at = known_312;
	else
		known = layout_told(&at);
	/* A race stores the same twice. */
	python.at = at;
	python.thread_state = known && strstr(v, "free-threading") == NULL ? thread_state : NULL;
	atomic_store_explicit(&python.found, 1, memory_order_release);
}

/* ---- Line tables ------------------------------------------------------------ */

/* PEP 626: pairs of a distance in bytecode and one in lines. */
static int line_310(const unsigned char *p, int64_t n, int line, int at)
{
	int end = 0;
	for (int64_t i = 0; i + 1 < n; i += 2) {
		int delta = (signed char)p[i + 1];
		end += p[i];
		if (delta != -128)
			line += delta;
		if (end > at)
			return delta == -128 ? 0 : line;
	}
	return line;
}

static int64_t varint(const unsigned char *p, int64_t n, int64_t *i)
{
	int64_t v = 0;
	for (int shift = 0; *i < n && shift < 60; shift += 6) {
		unsigned char b = p[(*i)++];
		v |= (int64_t)(b & 63) << shift;
		if (!(b & 64))
			break;
	}
	return v;
}

/* 3.11 and later: entries of a first byte (kind and length) and what the kind
 * needs; only the distance in lines counts here. */
static int line_311(const unsigned char *p, int64_t n, int line, int64_t at)
{
	int64_t end = 0;
	for (int64_t i = 0; i < n;) {
		int kind = p[i] >> 3 & 15;
		end += ((p[i] & 7) + 1) * 2;
		i++;
		if (kind == 13 || kind == 14) {
			int64_t v = varint(p, n, &i);
			line += (int)(v & 1 ? -(v >> 1) : v >> 1);
			if (kind == 14) {
				varint(p, n, &i);
				varint(p, n, &i);
				varint(p, n, &i);
			}
		} else if (kind >= 10 && kind <= 12) {
			line += kind - 10;
			i += 2;
		} else if (kind < 10) {
			i++;
		}
		if (end > at)
			return kind == 15 ? 0 : line;
	}
	return 0;
}

/* ---- Frames ----------------------------------------------------------------- */

/* A str: its length, and its bytes where it is plain ASCII. */
static const char *ascii(const void *str, size_t *n)
{
	*n = (size_t)u64(str, 16);
	return (i32(str, 32) >> 5 & 3) == 3 ? (const char *)str + python.at.ascii : NULL; /* compact and ASCII */
}

static uint64_t last_bytes(const void *str)
{
	size_t n;
	const char *p = ascii(str, &n);
	uint64_t v = 0;
	size_t take = n < sizeof v ? n : sizeof v;
	if (p)
		memcpy(&v, p + n - take, take);
	return v ^ (uint64_t)n << 56;
}

/* Characters beyond ASCII, of one, two or four bytes each, as UTF-8. */
static size_t utf8(const void *str, char *out, size_t room)
{
	size_t n = (size_t)u64(str, 16), k = 0;
	int kind = i32(str, 32) >> 2 & 7;
	const unsigned char *p = (const unsigned char *)str + python.at.wide;
	if (!(i32(str, 32) >> 5 & 1)) /* not compact: made in a way that code objects' names are not */
		return 0;
	for (size_t i = 0; i < n && k + 4 <= room; i++) {
		uint32_t c = kind == 1 ? p[i] : kind == 2 ? (uint32_t)(p[2 * i] | p[2 * i + 1] << 8) : (uint32_t)i32(p, 4 * i);
		if (c < 0x80) {
			out[k++] = (char)c;
		} else if (c < 0x800) {
			out[k++] = (char)(0xc0 | c >> 6);
			out[k++] = (char)(0x80 | (c & 63));
		} else if (c < 0x10000) {
			out[k++] = (char)(0xe0 | c >> 12);
			out[k++] = (char)(0x80 | (c >> 6 & 63));
			out[k++] = (char)(0x80 | (c & 63));
		} else {
			out[k++] = (char)(0xf0 | c >> 18);
			out[k++] = (char)(0x80 | (c >> 12 & 63));
			out[k++] = (char)(0x80 | (c >> 6 & 63));
			out[k++] = (char)(0x80 | (c & 63));
		}
	}
	return k;
}

static uint32_t str_text(struct state *s, const void *str)
{
	char out[TEXT];
	size_t n;
	const char *p = ascii(str, &n);
	if (p)
		return text(s, p, n < TEXT ? n : TEXT);
	return text(s, out, utf8(str, out, sizeof out));
}

static struct frame_origin origin_of(const void *code)
{
	const void *file = pointer(code, python.at.filename), *name = pointer(code, python.at.qualname);
	const void *lines = pointer(code, python.at.linetable);
	return (struct frame_origin){
		.filename = (uint64_t)(uintptr_t)file, .qualname = (uint64_t)(uintptr_t)name, .linetable = (uint64_t)(uintptr_t)lines,
		.filename_end = last_bytes(file), .qualname_end = last_bytes(name), .lines = (int64_t)u64(lines, 16),
		.first_line = (uint32_t)i32(code, python.at.first_line),
	};
}

static bool same_origin(const struct frame_origin *a, const struct frame_origin *b)
{
	return a->filename == b->filename && a->qualname == b->qualname && a->linetable == b->linetable && a->filename_end == b->filename_end &&
	       a->qualname_end == b->qualname_end && a->lines == b->lines && a->first_line == b->first_line;
}

enum { FRAMES = 1 << 16 };

static uint32_t python_frame(struct state *s, const void *code, int64_t at)
{
	if (!s->origins && !(s->origins = memory(FRAMES * sizeof *s->origins)))
		return 0;
	/* Code objects lie at multiples of 16; the highest bit is for native frames. */
	uint64_t key = (uint64_t)(uintptr_t)code >> 4 << 20 | ((uint64_t)at & 0xfffff);
	struct frame_origin origin = origin_of(code);
	uint32_t frame = table_get(&s->frames, key);
	if (frame && same_origin(&s->origins[frame], &origin))
		return frame;
	const unsigned char *lines = (const unsigned char *)(uintptr_t)origin.linetable + 32;
	struct ttmon_frame f = {
		.file = str_text(s, pointer(code, python.at.filename)),
		.function = str_text(s, pointer(code, python.at.qualname)),
		.line = (uint32_t)(python.at.newer ? line_311(lines, origin.lines, (int)origin.first_line, at) : line_310(lines, origin.lines, (int)origin.first_line, (int)at)),
	};
	frame = frame_new(s, &f);
	if (frame && frame < FRAMES) {
		s->origins[frame] = origin;
		table_put(&s->frames, key, frame);
	}
	return frame;
}

/* Shims of the interpreter have no lines of their own. */
static bool is_shim(const void *code)
{
	static const char name[] = "<interpreter trampoline";
	size_t n;
	const char *p = ascii(pointer(code, python.at.qualname), &n);
	return p && n >= sizeof name - 1 && memcmp(p, name, sizeof name - 1) == 0;
}

uint32_t python_stack(struct state *s, uint32_t parent)
{
	if (!atomic_load_explicit(&python.found, memory_order_acquire) || !python.thread_state)
		return parent;
	const char *thread = python.thread_state();
	if (!thread)
		return parent; /* a thread that Python does not know */
	const struct layout *at = &python.at;
	if (at->cframe && !(thread = pointer(thread, at->cframe)))
		return parent;
	const void *codes[DEPTH];
	int64_t places[DEPTH];
	int n = 0;
	for (const char *f = pointer(thread, at->current_frame); f && n < DEPTH; f = pointer(f, at->previous)) {
		if (at->newer && f[at->owner] >= OWNED_BY_C)
			continue;
		const char *code = (const char *)((uintptr_t)u64(f, at->code) & ~(uintptr_t)REFERENCE_BITS);
		if (!code)
			continue;
		places[n] = at->newer ? (int64_t)(u64(f, at->instruction) - (uint64_t)(uintptr_t)(code + at->instructions)) : (int64_t)i32(f, at->instruction) * 2;
		codes[n] = code;
		n += !is_shim(code);
	}
	while (n-- > 0) {
		uint32_t next = node_of(s, parent, python_frame(s, codes[n], places[n]));
		if (next)
			parent = next;
	}
	return parent;
}
