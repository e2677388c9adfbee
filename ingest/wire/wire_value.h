/* SPDX-License-Identifier: Apache-2.0 */
/* Values of attributes and of parameters. Private to the files of ingest/wire/wire.h. Thread: the one that owns the
 * region.
 */
#ifndef INGEST_WIRE_VALUE_H
#define INGEST_WIRE_VALUE_H

#include "ingest/wire/wire_message.h"

/* Read a value. Texts must be UTF-8 and numbers finite.
 *
 * from  NULL: null. The value borrows its texts
 * out   the elements of a list live in the region: booleans first, then integers, numbers and texts
 *
 * Returns field_error with what is wrong, without a place: the caller adds it.
 */
err_t wire_value_read(const Sluice__V1__Value *from, err_code_t field_error, struct region *r, struct value *out);

/* Make the message of a value. It borrows nothing from it. */
err_t wire_value_make(const struct value *value, struct region *r, Sluice__V1__Value **out);

/* Copy the texts and elements of a value into a region. */
err_t wire_value_copy(const struct value *from, struct region *r, struct value *out);

#endif
