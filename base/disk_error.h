/* SPDX-License-Identifier: Apache-2.0 */
/* Which errors of a write mean that the disk is full. */
#ifndef BASE_DISK_ERROR_H
#define BASE_DISK_ERROR_H

#include <errno.h>
#include <stdbool.h>

/* Can the write be repeated once there is room? EIO counts too: LMDB returns it when only some pages could be written.
 *
 * error  of errno, or 0 */
static inline bool disk_error_is_full(int error)
{
  return error == ENOSPC || error == EDQUOT || error == EIO || error == EFBIG;
}

#endif
