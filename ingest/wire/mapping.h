/* SPDX-License-Identifier: Apache-2.0 */
/* A mapping says where in a record of JSON, Avro or Protobuf the parts of an item are, for topics that others write in
 * their own form (docs/formats.md).
 *
 * Thread: any, once it is complete.
 */
#ifndef INGEST_MAPPING_H
#define INGEST_MAPPING_H

#include "base/err.h"
#include "base/value.h"
#include "ingest/avro/avro_schemas.h"
#include "ingest/json/json_path.h"
#include "ingest/protobuf/protobuf_source.h"

enum mapping_kind { MAPPING_VECTOR, MAPPING_CODES, MAPPING_ATTRIBUTE };

struct mapping_field {
  enum mapping_kind kind;
  char *name;               /* of the space, or of the attribute */
  enum attribute_type type; /* MAPPING_ATTRIBUTE */
  struct json_path path;
};

/* All zeros: nothing is mapped. */
struct mapping {
  struct json_path key;             /* no steps: the record's key */
  struct json_path deleted;         /* no steps: there is no flag */
  bool is_debezium;                 /* rows are in Debezium's envelope */
  struct avro_schemas *schemas;     /* of values in Avro, owned, or NULL */
  struct protobuf_source *messages; /* of values in Protobuf, owned, or NULL; both NULL: they are JSON */
  struct mapping_field *fields;
  size_t n_fields;
  size_t capacity;
};

/* Add a field. Returns ERR_CONFIG for a wrong path; ERR_MEMORY. */
err_t mapping_add(struct mapping *m, enum mapping_kind kind, const char *name, enum attribute_type type,
                  const char *path);
void mapping_fini(struct mapping *m);

#endif
