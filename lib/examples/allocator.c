/* A program with an allocator of its own that reports to ttmon, through libttmon. It
 * holds its memory until its standard input ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "ttmon.h"

int main(void)
{
	/* One pool: DRAM of the chip with this unique id, 8 banks of 1 GiB. */
	struct ttmon_pool pool = {.chip = 4476187513037, .pool = 0, .banks = 8, .capacity = 1 << 30, .alignment = 64};
	ttmon_list_t dram = ttmon_list(&pool);
	if (!dram)
		fprintf(stderr, "ttmon will not see this memory: %s\n", ttmon_error());

	ttmon_tag_push("weights");
	ttmon_alloc(dram, 0, 64 << 20); /* 64 MiB in each bank */
	ttmon_tag_pop();
	ttmon_alloc(dram, 64 << 20, 1 << 20);
	ttmon_free(dram, 64 << 20);

	struct ttmon_usage usage;
	if (ttmon_query(pool.chip, pool.pool, &usage) == 0)
		printf("%" PRIu64 " bytes in %" PRIu64 " blocks, %" PRIu64 " at most\n", usage.bytes, usage.blocks, usage.peak_bytes);
	fflush(stdout);
	while (getchar() != EOF) /* an allocator lives as long as its program works */
		;
	ttmon_free(dram, 0);
	ttmon_list_close(dram);
	return 0;
}
