/* SPDX-License-Identifier: Apache-2.0 */
/* Reading single values of a mapped record. Databases and their connectors write a type in several ways; each is taken
 * that can be read in one way only. Private to the files of ingest/wire/mapped_item.h and mapping_census.h.
 *
 * Thread: the one that owns the region. Blocks: no. Results live in the region.
 */
#ifndef INGEST_MAPPED_VALUE_H
#define INGEST_MAPPED_VALUE_H

#include "base/item.h"
#include "ingest/wire/json_scalar.h"

/* Read a vector: a list of finite numbers, such a list as text, or Base64 text of little-endian f32. */
err_t mapped_value_vector(struct json_reader *rd, const struct json_place *at, const json_t *json, struct floats *out);

/* Read codes: a list of 0..255, such a list as text, or Base64 text. */
err_t mapped_value_codes(struct json_reader *rd, const struct json_place *at, const json_t *json, struct span *out);

/* Read the value of an attribute: docs/formats.md has what each type takes. */
err_t mapped_value_attribute(struct json_reader *rd, const struct json_place *at, enum attribute_type type,
                             const json_t *json, struct value *out);

/* Read a key: text or an integer. */
err_t mapped_value_key(struct json_reader *rd, const struct json_place *at, const json_t *json, struct span *out);

/* Read a flag that says that the row is deleted: true, or a time that is set. Absent and null are false. */
err_t mapped_value_flag(struct json_reader *rd, const struct json_place *at, const json_t *json, bool *out);

/* Does the value stand for one that Debezium could not read, because it has not changed? */
bool mapped_value_is_unavailable(const json_t *json);

#endif
