/* SPDX-License-Identifier: Apache-2.0 */
/* Whether components stay finite. */
#ifndef ENGINE_MOL_RANGE_H
#define ENGINE_MOL_RANGE_H

#include "engine/mol/mol_model.h"

/* Verify that a projection makes no infinite component of any input that shape_check_floats() accepts. Else a query
 * could be answered without any hit, and an item be missing from answers that are called exact.
 *
 * file, prefix   of its weights, for the message
 *
 * Returns ERR_MODEL; ERR_MEMORY. Thread: any. */
err_t mol_range_verify(const char *file, const char *prefix, const struct mol_projection *p);

#endif
