/* Coming late: a tt-metal that is already loaded has bound its calls. They are
 * bound anew, to us, by rewriting the slots of its relocations.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "metal.h"

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT, ABSOLUTE = R_X86_64_64 };
#elif defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT, ABSOLUTE = R_AARCH64_ABS64 };
#else
#error "libttmon knows x86-64 and arm64"
#endif

/* Our function for a symbol, or NULL for those that are only called. */
static void *ours(int symbol)
{
	switch (symbol) {
#define CASE(name) case SYM_##name: return (void *)(uintptr_t)METAL_##name
#define DECLARE(name) extern void METAL_##name(void)
		DECLARE(list_made); DECLARE(list_allocate); DECLARE(list_allocate_at); DECLARE(list_deallocate);
		DECLARE(list_clear); DECLARE(list_shrink); DECLARE(list_reset); DECLARE(banks);
		DECLARE(allocator_made); DECLARE(allocator_gone); DECLARE(allocator_gone_whole); DECLARE(buffer); DECLARE(mass_free);
		DECLARE(provider_old); DECLARE(provider); DECLARE(provider_gone); DECLARE(record);
		DECLARE(work_pages); DECLARE(work_pages_const); DECLARE(work_record); DECLARE(work_on); DECLARE(work_on_old); DECLARE(work_off); DECLARE(work_off_old);
		DECLARE(op_named); DECLARE(enqueued); DECLARE(replayed); DECLARE(finish); DECLARE(event_wait);
		DECLARE(replayed_list); DECLARE(queue_made); DECLARE(queue_gone); DECLARE(sub_devices_made); DECLARE(sub_devices_loaded);
#ifdef __x86_64__
		DECLARE(tensor_made);
		CASE(tensor_made);
#endif
		CASE(list_made); CASE(list_allocate); CASE(list_allocate_at); CASE(list_deallocate);
		CASE(list_clear); CASE(list_shrink); CASE(list_reset); CASE(banks);
		CASE(allocator_made); CASE(allocator_gone); CASE(allocator_gone_whole); CASE(buffer); CASE(mass_free);
		CASE(provider_old); CASE(provider); CASE(provider_gone); CASE(record);
		CASE(work_pages); CASE(work_pages_const); CASE(work_record); CASE(work_on); CASE(work_on_old); CASE(work_off); CASE(work_off_old);
		CASE(op_named); CASE(enqueued); CASE(replayed); CASE(finish); CASE(event_wait);
		CASE(replayed_list); CASE(queue_made); CASE(queue_gone); CASE(sub_devices_made); CASE(sub_devices_loaded);
	}
	return NULL;
}

struct module {
	ElfW(Addr) base;
	const ElfW(Sym) *symbols;
	const char *strings;
	const ElfW(Rela) *rela, *jump;
	size_t rela_size, jump_size;
	ElfW(Addr) relro_start, relro_end;
};

static int read_module(struct dl_phdr_info *info, struct module *m)
{
	*m = (struct module){.base = info->dlpi_addr};
	const ElfW(Dyn) *d = NULL;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(m->base + p->p_vaddr);
		if (p->p_type == PT_GNU_RELRO) {
			m->relro_start = m->base + p->p_vaddr;
			m->relro_end = m->relro_start + p->p_memsz;
		}
	}
	for (; d && d->d_tag != DT_NULL; d++) {
		/* The C library has made these into addresses, but for the kernel's own page. */
		ElfW(Addr) p = d->d_un.d_ptr < m->base ? m->base + d->d_un.d_ptr : d->d_un.d_ptr;
		switch (d->d_tag) {
		case DT_SYMTAB: m->symbols = (const ElfW(Sym) *)p; break;
		case DT_STRTAB: m->strings = (const char *)p; break;
		case DT_RELA: m->rela = (const ElfW(Rela) *)p; break;
		case DT_RELASZ: m->rela_size = d->d_un.d_val; break;
		case DT_JMPREL: m->jump = (const ElfW(Rela) *)p; break;
		case DT_PLTRELSZ: m->jump_size = d->d_un.d_val; break;
		}
	}
	return m->symbols && m->strings;
}

static int symbol_number(const char *name)
{
	static const char prefix[] = "_ZN2tt";
	if (strncmp(name, prefix, sizeof prefix - 1) != 0)
		return -1;
	for (int i = 0; i < SYMBOLS; i++)
		if (ours(i) && strcmp(name, metal_symbols[i].name) == 0)
			return i;
	return -1;
}

static bool set_slot(const struct module *m, ElfW(Addr) slot, void *to)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *start = (void *)(slot & ~(ElfW(Addr))(page - 1));
	bool readonly = slot >= m->relro_start && slot < m->relro_end;
	if (readonly && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
		return false;
	atomic_store((_Atomic(void *) *)slot, to);
	if (readonly)
		mprotect(start, page, PROT_READ);
	return true;
}

struct attach {
	int copies, failed, pass;
};

static void bind(const struct module *m, const ElfW(Rela) *r, size_t bytes, struct attach *a)
{
	for (size_t i = 0; r && i < bytes / sizeof *r; i++) {
		uint32_t type = (uint32_t)ELF64_R_TYPE(r[i].r_info);
		if (type != JUMP_SLOT && type != GLOB_DAT && type != ABSOLUTE)
			continue;
		const ElfW(Sym) *symbol = &m->symbols[ELF64_R_SYM(r[i].r_info)];
		int n = symbol_number(m->strings + symbol->st_name);
		if (n < 0)
			continue;
		if (n == SYM_list_allocate && symbol->st_shndx != SHN_UNDEF && type == ABSOLUTE)
			a->copies++; /* the virtual table: this library defines the class */
		if (!set_slot(m, m->base + r[i].r_offset, ours(n)))
			a->failed = errno;
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	struct module m;
	struct attach *a = data;
	if (!read_module(info, &m) || m.strings == NULL)
		return 0;
	/* Not ourselves: in our own slots the names mean us. */
	Dl_info own;
	if (dladdr((void *)(uintptr_t)ours(SYM_list_made), &own) && (ElfW(Addr))own.dli_fbase == m.base)
		return 0;
	bind(&m, m.rela, m.rela_size, a);
	bind(&m, m.jump, m.jump_size, a);
	return 0;
}

int ttmon_attach(void)
{
	struct state *s = state();
	if (!s)
		return -1;
	int before = errno;
	struct attach a = {0};
	s->late = true;
	dl_iterate_phdr(visit, &a);
	if (a.failed)
		complain(s, "binding tt-metal's calls anew", a.failed);
	errno = before;
	return a.failed ? -1 : a.copies;
}

struct vector {
	uint64_t (*begin)[2], (*end)[2], (*capacity)[2];
};

void late_list(struct state *s, uint64_t list, uint64_t caller)
{
	if (atomic_load(&s->stage) == STAGE_READY) {
		enter(s);
		bool known = table_get(&s->objects, list) != 0;
		leave(s);
		if (known)
			return;
	}
	struct vector (*blocks)(uint64_t) = (struct vector(*)(uint64_t))metal_function(SYM_list_blocks, caller);
	if (!blocks || !list_made(s, &(struct shape){.object = list, .pool = TTMON_POOL_UNKNOWN, .late = 1}))
		return;
	struct vector v = blocks(list);
	self.silent = true;
	for (uint64_t(*b)[2] = v.begin; b < v.end; b++)
		list_allocated(s, list, (*b)[0], (*b)[1] - (*b)[0], 0);
	self.silent = false;
	void (*delete)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "_ZdlPv");
	if (!delete)
		delete = (void (*)(void *))dlsym(RTLD_NEXT, "_ZdlPv");
	if (delete && v.begin)
		delete(v.begin);
}

uint64_t late_size(uint64_t list, uint64_t address, uint64_t bytes, uint64_t caller)
{
	uint64_t (*size)(uint64_t, uint64_t) = (uint64_t(*)(uint64_t, uint64_t))metal_function(SYM_list_size, caller);
	uint64_t n = size ? size(list, address) : 0;
	return n >= bytes ? n : bytes;
}
