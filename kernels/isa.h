/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of instruction sets, rising. A level's kernels are those of the level below it, with its own faster ones.
 * Thread: any. */
#ifndef KERNELS_ISA_H
#define KERNELS_ISA_H

#include <stdbool.h>

enum isa { ISA_REF, ISA_AVX2, ISA_AVX512, ISA_AVX512_VNNI, ISA_AVX512_VBMI, ISA_AMX, N_ISAS };

/* Return the best level of this machine and this build. The first call requests permission for AMX tiles from the
 * system and tests their instructions: less than a millisecond. */
enum isa isa_detect(void);

/* Return the name of a level: "ref", "avx2", "avx512", "avx512vnni", "avx512vbmi" or "amx". */
const char *isa_name(enum isa isa);

/* Find a level by its name. Returns false if there is none. */
bool isa_find(const char *name, enum isa *out);

#endif
