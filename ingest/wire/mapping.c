/* SPDX-License-Identifier: Apache-2.0 */
/* The list of mapped fields. */
#include "ingest/wire/mapping.h"

#include "base/mem.h"

static void free_field(struct mapping_field *field)
{
  mem_free(&field->name);
  json_path_fini(&field->path);
}

err_t mapping_add(struct mapping *m, enum mapping_kind kind, const char *name, enum attribute_type type,
                  const char *path)
{
  AUTO(free_field) struct mapping_field field = { .kind = kind, .type = type };

  TRY(mem_copy_str(name, &field.name));
  TRY(json_path_init(span_of_str(path), &field.path));
  TRY(mem_grow(m->n_fields + 1, sizeof *m->fields, &m->capacity, &m->fields));
  m->fields[m->n_fields++] = field;
  field = (struct mapping_field){ 0 };
  return ERR_OK;
}

void mapping_fini(struct mapping *m)
{
  json_path_fini(&m->key);
  json_path_fini(&m->deleted);
  avro_schemas_close(&m->schemas);
  protobuf_source_close(&m->messages);
  for (size_t i = 0; i < m->n_fields; i++)
    free_field(&m->fields[i]);
  mem_free(&m->fields);
  m->n_fields = m->capacity = 0;
}
