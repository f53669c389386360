/* Which tensor a buffer is made for: ttnn describes it to the function that
 * allocates, and what is allocated meanwhile is its own.
 *
 * The description begins with the shape, which looks the same in all releases
 * that are known (0.71 to 0.81): a vector with room for eight numbers in itself.
 * Behind it is the layout: since 0.76 an object that exported functions tell of,
 * with another shape behind it; before, numbers. Whatever looks otherwise is left
 * alone: nothing is called, and nothing read, beyond what has been recognized.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "metal.h"

enum { DIMENSIONS = 8 };

#ifdef __x86_64__ /* the only machine that ttnn runs on */

/* A shape as it lies in memory. */
struct shape_memory {
	uint64_t begin; /* its numbers: those below */
	uint32_t size, capacity;
	uint32_t number[DIMENSIONS];
	uint64_t rank;
};

static bool is_shape(const struct shape_memory *m)
{
	return m->begin == (uint64_t)(uintptr_t)m->number && m->size <= DIMENSIONS && m->capacity == DIMENSIONS && m->rank == m->size;
}

/* The layout where no function tells of it, as in 0.71 to 0.75. */
struct old_layout {
	uint32_t type;
	uint32_t height, width, face_height, face_width, tile, face; /* of a tile */
	uint32_t faces, more[3];
	uint8_t page; /* 0: rows, 1: tiles */
	uint32_t memory, buffer;
};

static bool is_old_layout(const struct old_layout *l)
{
	return l->type <= 16 && l->height && l->width && l->tile == l->height * l->width && l->face == l->face_height * l->face_width && l->page <= 1 &&
	       l->memory <= 5 && l->buffer <= 4;
}

/* Asks the layout what it is; 0xff: it does not say. */
static void ask_layout(struct tensor *t, uint64_t layout, uint64_t caller)
{
	uint8_t (*type)(uint64_t) = (uint8_t(*)(uint64_t))metal_function(SYM_tensor_type, caller);
	uint8_t (*page)(uint64_t) = (uint8_t(*)(uint64_t))metal_function(SYM_tensor_page, caller);
	uint64_t (*config)(uint64_t) = (uint64_t(*)(uint64_t))metal_function(SYM_tensor_memory, caller);
	uint8_t (*placed)(uint64_t) = (uint8_t(*)(uint64_t))metal_function(SYM_memory_layout, caller);
	t->type = type ? type(layout) : 0xff;
	t->page = page ? page(layout) : 0xff;
	t->memory = config && placed ? placed(config(layout)) : 0xff;
}

static void recognize(struct tensor *t, uint64_t spec, uint64_t caller)
{
	const struct shape_memory *m = (const struct shape_memory *)(uintptr_t)spec;
	t->known = false;
	if (!is_shape(m))
		return;
	t->rank = (uint8_t)m->size;
	memcpy(t->shape, m->number, sizeof t->shape);
	memset(t->shape + t->rank, 0, (DIMENSIONS - t->rank) * sizeof *t->shape);
	t->type = t->page = t->memory = 0xff;
	t->known = true;
	uint64_t layout = spec + sizeof *m;
	bool told = metal_function(SYM_tensor_type, caller) != NULL;
	const struct old_layout *old = (const struct old_layout *)(uintptr_t)layout;
	if (told && is_shape((const struct shape_memory *)(uintptr_t)(layout + sizeof(void *)))) {
		ask_layout(t, layout, caller);
	} else if (!told && is_old_layout(old)) {
		t->type = (uint8_t)old->type;
		t->page = old->page;
		t->memory = (uint8_t)old->memory;
	}
}

/* Calls f(a, b, c). An exception that passes through ends the tensor. */
INTERNAL uint64_t call_tensor(void *f, uint64_t a, uint64_t b, uint64_t c);
__asm__(".pushsection .text\n"
	".type call_tensor, @function\n"
	".hidden call_tensor\n"
	"call_tensor:\n"
	".cfi_startproc\n"
	".cfi_personality 0x1b, tensor_fails\n"
	"subq $8, %rsp\n"
	".cfi_def_cfa_offset 16\n"
	"movq %rdi, %rax\n"
	"movq %rsi, %rdi\n"
	"movq %rdx, %rsi\n"
	"movq %rcx, %rdx\n"
	"call *%rax\n"
	"addq $8, %rsp\n"
	".cfi_def_cfa_offset 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size call_tensor, .-call_tensor\n"
	".popsection\n");

INTERNAL __attribute__((used)) int tensor_fails(int version, int actions, uint64_t class, void *exception, void *context)
{
	enum { GO_ON = 8 };
	(void)version, (void)actions, (void)class, (void)exception, (void)context;
	self.tensor.known = false;
	return GO_ON;
}

/* allocate_device_buffer(device, spec); the first argument is where the answer goes. */
HOOK uint64_t METAL_tensor_made(uint64_t answer, uint64_t device, uint64_t spec)
{
	CALL(uint64_t(*)(uint64_t, uint64_t, uint64_t), tensor_made, 0);
	if (s && !s->no_tensors)
		recognize(&self.tensor, spec, (uintptr_t)__builtin_return_address(0));
	uint64_t at = call_tensor((void *)call, answer, device, spec);
	self.tensor.known = false;
	return at;
}

#endif

/* ---- As text ----------------------------------------------------------------- */

static const char *const types[] = {"bfloat16", "float32", "uint32", "bfloat8_b", "bfloat4_b", "uint8", "uint16", "int32"};
static const char *const pages[] = {"row_major", "tile"};
static const char *const memories[] = {"interleaved", "single_bank", "height_sharded", "width_sharded", "block_sharded", "nd_sharded"};

/* Appends a name that is known; behind an unknown one there is no more to say. */
static int name(char *to, int n, int room, const char *const *names, int count, uint8_t which)
{
	if (n < 0)
		return n;
	if (which >= count)
		return -n;
	return n + snprintf(to + n, (size_t)(room - n), " %s", names[which]);
}

uint32_t current_tensor(struct state *s)
{
	const struct tensor *t = &self.tensor;
	if (!t->known)
		return 0;
	uint64_t key = 14695981039346656037u;
	for (int i = 0; i < t->rank; i++)
		key = (key ^ t->shape[i]) * 1099511628211u;
	key = (key ^ ((uint64_t)t->rank << 24 | (uint64_t)t->type << 16 | (uint64_t)t->page << 8 | t->memory)) * 1099511628211u;
	key += key == 0;
	uint32_t known = table_get(&s->tensors, key);
	if (known)
		return known;
	char line[160];
	int n = 0;
	line[n++] = '[';
	for (int i = 0; i < t->rank; i++)
		n += snprintf(line + n, sizeof line - (size_t)n, i ? ",%u" : "%u", t->shape[i]);
	line[n++] = ']';
	n = name(line, n, sizeof line, types, sizeof types / sizeof *types, t->type);
	n = name(line, n, sizeof line, pages, sizeof pages / sizeof *pages, t->page);
	n = name(line, n, sizeof line, memories, sizeof memories / sizeof *memories, t->memory);
	known = text(s, line, (size_t)(n < 0 ? -n : n));
	if (known)
		table_put(&s->tensors, key, known);
	return known;
}
