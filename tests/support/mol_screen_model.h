/* SPDX-License-Identifier: Apache-2.0 */
/* mol_screen() of the level amx, with tiles in plain C. Everything but the tile instructions is the code of that level.
 * Needs AVX-512. */
#ifndef TESTS_SUPPORT_MOL_SCREEN_MODEL_H
#define TESTS_SUPPORT_MOL_SCREEN_MODEL_H

#include "kernels/kernels.h"

/* Replace mol_screen() and the functions that go with it in a table of the level avx512vnni or a higher one. */
void mol_screen_model(struct kernels *table);

#endif
