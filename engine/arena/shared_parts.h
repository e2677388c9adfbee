/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that several generations of a space use: models of the same vectors or codes, whose networks differ. */
#ifndef ENGINE_SHARED_PARTS_H
#define ENGINE_SHARED_PARTS_H

#include "engine/arena/space_table.h"

/* Verify that a new space can use the parts that spaces of the table use under the same name. Their number of sub-items
 * may differ: each model then refuses the codes that it does not know.
 *
 * Returns ERR_MODEL with what its model needs and what the parts are.
 */
err_t shared_parts_verify(const struct space_table *table, const struct space *space);

#endif
