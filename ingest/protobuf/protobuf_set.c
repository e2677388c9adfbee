/* SPDX-License-Identifier: Apache-2.0 */
/* The set is decoded by protobuf-c, after a look at how deep its messages are: protobuf-c follows them on the stack. */
#include "ingest/protobuf/protobuf_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "ingest/protobuf/protobuf_wire.h"
#include "ingest/protobuf/region_allocator.h"

enum { DEPTH_MAX = 32, NAME_BYTES_MAX = 1024, NAMES_SHOWN = 8 };

/* Decoding a descriptor takes some twenty times its bytes; more only if it was made to. */
enum { MEMORY_TIMES = 64, MEMORY_MORE = 1 << 20 };

#define REMEDY "make it of the .proto files with protoc --include_imports --descriptor_set_out=FILE"

/* Decoding -------------------- */

/* Which fields lead to nested messages: file = 1, message_type = 4, then nested_type = 3 again and again. */
static uint32_t field_inwards(int depth)
{
  return depth == 0 ? 1 : depth == 1 ? 4 : 3;
}

static err_t verify_depth(struct span bytes, int depth)
{
  if (depth > DEPTH_MAX)
    FAIL(ERR_CONFIG, "messages are nested more than %d deep", DEPTH_MAX);
  while (bytes.n > 0) {
    struct protobuf_tag tag = { 0 };
    struct span inner = { 0 };
    TRY(protobuf_wire_take_tag(&bytes, &tag));
    bool is_inwards = tag.number == field_inwards(depth) && tag.type == PROTOBUF_WIRE_BYTES;
    if (!is_inwards) {
      TRY(protobuf_wire_skip(&bytes, &tag));
      continue;
    }
    TRY(protobuf_wire_take_bytes(&bytes, &inner));
    TRY(verify_depth(inner, depth + 1));
  }
  return ERR_OK;
}

static err_t unpack(struct span bytes, struct region *r, Descriptors__Set **out)
{
  struct region_allocator context = { .region = r };
  ProtobufCAllocator allocator = region_allocator_of(&context);
  size_t before = r->limit_bytes;

  err_code_t err = verify_depth(bytes, 0);
  if (err == ERR_WIRE)
    FAIL(ERR_CONFIG, "it is no descriptor set (%s): " REMEDY, err_message());
  TRY(err);
  r->limit_bytes = r->taken_bytes + bytes.n * MEMORY_TIMES + MEMORY_MORE;
  *out = descriptors__set__unpack(&allocator, bytes.n, bytes.p);
  r->limit_bytes = before;
  if (context.err == ERR_MEMORY)
    return context.err;
  if (!*out)
    FAIL(ERR_CONFIG, "it is no descriptor set: " REMEDY);
  return ERR_OK;
}

/* Names -------------------- */

static err_t verify_name(const char *name)
{
  if (!name || !*name || !utf8_is_valid(span_of_str(name)))
    FAIL(ERR_CONFIG, "the name of a message or an enum is missing, or is not UTF-8");
  return ERR_OK;
}

static err_t full_name(struct region *r, const char *scope, const char *name, const char **out)
{
  char text[NAME_BYTES_MAX];
  struct span copy;

  TRY(verify_name(name));
  int n = snprintf(text, sizeof text, "%s%s%s", scope, *scope ? "." : "", name);
  if (n < 0 || (size_t)n >= sizeof text)
    FAIL(ERR_CONFIG, "a name in it has more than %d bytes", NAME_BYTES_MAX - 1);
  TRY(region_copy(r, span_of(text, (size_t)n), &copy));
  *out = (const char *)copy.p;
  return ERR_OK;
}

static err_t add(struct protobuf_set *set, struct protobuf_definition definition)
{
  TRY(mem_grow(set->n + 1, sizeof *set->definitions, &set->capacity, &set->definitions));
  definition.index = set->n;
  set->definitions[set->n++] = definition;
  return ERR_OK;
}

static err_t add_enums(struct protobuf_set *set, struct region *r, const Descriptors__File *file, const char *scope,
                       size_t n, Descriptors__Enum *const *enums)
{
  for (size_t i = 0; i < n; i++) {
    struct protobuf_definition definition = { .file = file, .enumeration = enums[i] };
    TRY(full_name(r, scope, enums[i]->name, &definition.name));
    TRY(add(set, definition));
  }
  return ERR_OK;
}

/* Add messages and all that is defined in them. They are not deep: verify_depth(). */
static err_t add_messages(struct protobuf_set *set, struct region *r, const Descriptors__File *file, const char *scope,
                          size_t n, Descriptors__Message *const *messages)
{
  for (size_t i = 0; i < n; i++) {
    const Descriptors__Message *m = messages[i];
    struct protobuf_definition definition = { .file = file, .message = m };
    TRY(full_name(r, scope, m->name, &definition.name));
    TRY(add(set, definition));
    TRY(add_enums(set, r, file, definition.name, m->n_enum_type, m->enum_type));
    TRY(add_messages(set, r, file, definition.name, m->n_nested_type, m->nested_type));
  }
  return ERR_OK;
}

static err_t add_file(struct protobuf_set *set, struct region *r, const Descriptors__File *file)
{
  const char *scope = file->package ? file->package : "";

  if (!utf8_is_valid(span_of_str(scope)))
    FAIL(ERR_CONFIG, "the name of a package is not UTF-8");
  TRY(add_enums(set, r, file, scope, file->n_enum_type, file->enum_type));
  return add_messages(set, r, file, scope, file->n_message_type, file->message_type);
}

/* Of two that have one name, the first one counts. */
static int compare(const void *a, const void *b)
{
  const struct protobuf_definition *x = a, *y = b;
  int order = strcmp(x->name, y->name);

  return order ? order : (x->index > y->index) - (x->index < y->index);
}

err_t protobuf_set_read(struct span bytes, struct region *r, struct protobuf_set *out)
{
  Descriptors__Set *set = NULL;

  TRY(unpack(bytes, r, &set));
  for (size_t i = 0; i < set->n_file; i++)
    TRY(add_file(out, r, set->file[i]));
  if (out->n == 0)
    FAIL(ERR_CONFIG, "it defines no message: " REMEDY);
  qsort(out->definitions, out->n, sizeof *out->definitions, compare);
  return ERR_OK;
}

void protobuf_set_fini(struct protobuf_set *set)
{
  mem_free(&set->definitions);
  set->n = set->capacity = 0;
}

struct protobuf_definition *protobuf_set_find(const struct protobuf_set *set, const char *name)
{
  size_t low = 0, high = set->n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(set->definitions[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < set->n && strcmp(set->definitions[low].name, name) == 0 ? &set->definitions[low] : NULL;
}

/* Is it a message that somebody may want to read? */
static bool is_shown(const struct protobuf_definition *d)
{
  bool is_entry = d->message && d->message->options && d->message->options->map_entry;

  return d->message && !is_entry && strncmp(d->name, "google.protobuf.", strlen("google.protobuf.")) != 0;
}

const char *protobuf_set_list(const struct protobuf_set *set, char *text, size_t size)
{
  size_t n_shown = 0, used = 0;

  text[0] = '\0';
  for (size_t i = 0; i < set->n; i++) {
    if (!is_shown(&set->definitions[i]) || n_shown++ >= NAMES_SHOWN || used >= size)
      continue;
    int n = snprintf(text + used, size - used, "%s%s", used ? ", " : "", set->definitions[i].name);
    used += n > 0 ? (size_t)n : 0;
  }
  if (n_shown > NAMES_SHOWN && used < size)
    snprintf(text + used, size - used, " and %zu more", n_shown - NAMES_SHOWN);
  return n_shown ? text : "none";
}
