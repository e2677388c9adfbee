/* SPDX-License-Identifier: Apache-2.0 */
/* How many cores this process may use. */
#ifndef BASE_CORES_H
#define BASE_CORES_H

#include <stddef.h>

/* Return the number of cores that the process may run on, at least 1. A limit on the share of their time, as containers
 * have, does not count. */
size_t cores_available(void);

#endif
