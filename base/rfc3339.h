/* SPDX-License-Identifier: Apache-2.0 */
/* Times as text: RFC 3339, such as 2026-11-22T12:00:00Z or 2026-11-22T13:00:00.25+01:00. */
#ifndef BASE_RFC3339_H
#define BASE_RFC3339_H

#include "base/span.h"

/* Read a time. Leap seconds are not taken, as they have no millisecond of their own.
 *
 * ms           milliseconds since 1970, rounded down; negative before 1970
 * is_between   the time is after *ms and before *ms + 1
 *
 * Returns false if the text is not a time. Source: RFC 3339, section 5.6.
 */
bool rfc3339_read(struct span text, int64_t *ms, bool *is_between);

#endif
