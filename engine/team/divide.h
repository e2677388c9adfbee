/* SPDX-License-Identifier: Apache-2.0 */
/* Work on an array, divided into pieces, which the calling thread and idle helpers of a team (team.h) do. A piece must
 * not depend on others. */
#ifndef ENGINE_DIVIDE_H
#define ENGINE_DIVIDE_H

#include "base/region.h"
#include "engine/team/team.h"

/* Do elements first to end - 1.
 *
 * scratch  of the thread; what is allocated there is forgotten after the piece
 */
typedef err_code_t divide_work(void *context, size_t first, size_t end, struct region *scratch);

/* Do n elements, up to n_piece at a time. The calling thread works alone if there is no idle helper, or just one piece,
 * or if it stands back for all others (base/stand_back.h), as helpers would not.
 *
 * team     NULL: there is none
 * scratch  of the calling thread
 *
 * Returns ERR_OK; the error of one of the pieces that failed. Then some may not have been begun. Thread: any that has
 * not entered the team. Blocks: until all pieces are done. */
err_t divide(struct team *team, size_t n, size_t n_piece, divide_work *work, void *context, struct region *scratch);

#endif
