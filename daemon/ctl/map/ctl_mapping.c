/* SPDX-License-Identifier: Apache-2.0 */
/* Decide what each field is for, then write that down. A field is for the key, for the flag of deleted items, for parts
 * of spaces, for an attribute, or for nothing. */
#include "daemon/ctl/map/ctl_mapping.h"

#include <assert.h>
#include <ctype.h>
#include <jansson.h>
#include <string.h>

#include "base/attributes.h"
#include "base/mem.h"
#include "engine/filter/filter.h"

enum use { USE_NOTHING, USE_KEY, USE_DELETED, USE_PART, USE_ATTRIBUTE };

/* Vectors as text are taken from so many numbers on, and only if a space needs that many: other text may look alike. */
enum { TEXT_VECTOR_MIN = 8, TEXT_CODES_MIN = 24, LENGTH_MIN = 2 };

static_assert(ATTRIBUTES_MAX == 64, "as a text below says");

struct choice {
  enum use use;
  enum attribute_type type;
  char name[ATTRIBUTE_NAME_MAX + 1];
  const char *why_not; /* USE_NOTHING */
};

struct plan {
  const struct mapping_census *census;
  const struct ctl_mapping_space *spaces;
  size_t n_spaces;
  struct choice *choices; /* [census->n_fields] */
  size_t *parts;          /* [n_spaces] the field of each space; n_fields: none */
  size_t n_attributes;
};

/* ---- Key and deletes ---- */

static bool is_one_of(const char *name, const char *const *names)
{
  for (; *names; names++) {
    if (strcasecmp(name, *names) == 0)
      return true;
  }
  return false;
}

/* Is it the member of a member of the row? */
static bool is_deep(const struct census_field *field)
{
  return field->name > field->path + (*field->path == '/');
}

/* How likely is it by its name and its place that a field is the item's key? 0: not at all. */
static int rank_key(const struct census_field *field)
{
  static const char *const names[] = { "id", "key", "sku", "code", "uuid", "guid", NULL };
  size_t n = strlen(field->name);

  if (is_one_of(field->name, names))
    return is_deep(field) ? 3 : 4;
  return n > 2 && strcasecmp(field->name + n - 2, "id") == 0 ? 2 - is_deep(field) : 0;
}

/* Is it also an object? Then nothing can be read at its path. */
static bool is_mixed(const struct census_field *field)
{
  return field->n_objects > 0;
}

static bool is_in_all_rows(const struct mapping_census *c, const struct census_field *field)
{
  return field->n == c->n_rows && field->n_keys == c->n_rows && !is_mixed(field);
}

static void choose_key(struct plan *p)
{
  const struct mapping_census *c = p->census;
  struct choice *best = NULL;
  int best_rank = 0;

  if (c->n_keyed == c->n_rows)
    return;
  for (size_t i = 0; i < c->n_fields; i++) {
    int rank = is_in_all_rows(c, &c->fields[i]) ? rank_key(&c->fields[i]) : 0;
    if (rank > best_rank) {
      best = &p->choices[i];
      best_rank = rank;
    }
  }
  if (best)
    best->use = USE_KEY;
}

static void choose_deleted(struct plan *p)
{
  static const char *const names[] = { "deleted",   "is_deleted", "isDeleted",  "__deleted",  "_deleted", "deleted_at",
                                       "deletedAt", "removed",    "is_removed", "removed_at", NULL };

  for (size_t i = 0; i < p->census->n_fields; i++) {
    const struct census_field *field = &p->census->fields[i];
    bool is_named = !is_deep(field) && !is_mixed(field) && is_one_of(field->name, names);
    if (is_named && field->n_flags == field->n && p->choices[i].use == USE_NOTHING) {
      p->choices[i].use = USE_DELETED;
      return;
    }
  }
}

/* ---- Parts ---- */

static bool is_list(const struct census_field *field)
{
  return field->n_lists == field->n;
}

/* Has a field a name for what a space needs? */
static bool is_named_so(const struct ctl_mapping_space *space, const struct census_field *field)
{
  return strcasecmp(field->name, space->name) == 0 || strcasestr(field->path, "emb") ||
         strcasestr(field->path, "vec") || strcasestr(field->path, "codes");
}

/* Can a space have its parts from a field? */
static bool suits(const struct ctl_mapping_space *space, const struct census_field *field)
{
  if (field->n == 0 || is_mixed(field))
    return false;
  if (space->is_known && space->lengths.item_codes)
    return field->n_codes == field->n && field->codes_length == space->lengths.item_codes &&
           (is_list(field) || field->codes_length >= TEXT_CODES_MIN || is_named_so(space, field));
  if (field->n_vectors < field->n || field->vector_length == 0)
    return false;
  if (!space->is_known)
    return is_list(field) && field->vector_length >= LENGTH_MIN;
  return field->vector_length == space->lengths.item_vector &&
         (is_list(field) || field->vector_length >= TEXT_VECTOR_MIN);
}

/* Of several fields that suit, the most likely one has the space's name, or is called so; and it is a list. */
static int rank_part(const struct ctl_mapping_space *space, const struct census_field *field)
{
  int by_name = strcasecmp(field->name, space->name) == 0 ? 3 : is_named_so(space, field) ? 2 : 1;

  return 2 * by_name + is_list(field);
}

static void choose_part(struct plan *p, size_t space)
{
  size_t n_fields = p->census->n_fields;
  int best_rank = 0;

  p->parts[space] = n_fields;
  for (size_t i = 0; i < n_fields; i++) {
    const struct census_field *field = &p->census->fields[i];
    bool is_free = p->choices[i].use == USE_NOTHING || p->choices[i].use == USE_PART;
    int rank = is_free && suits(&p->spaces[space], field) ? rank_part(&p->spaces[space], field) : 0;
    if (rank > best_rank) {
      best_rank = rank;
      p->parts[space] = i;
    }
  }
  if (best_rank > 0)
    p->choices[p->parts[space]].use = USE_PART;
}

/* ---- Attributes ---- */

/* Lists of numbers that all have the same length are likely to be vectors, and no set of texts. */
static bool are_vectors(const struct census_field *f)
{
  return f->n_vectors == f->n && f->vector_length >= LENGTH_MIN && is_list(f);
}

/* The narrowest type that all values have. N_ATTRIBUTE_TYPES: none. */
static enum attribute_type type_of(const struct census_field *f)
{
  if (f->n_booleans > 0 && f->n_booleans + f->n_bits == f->n)
    return ATTRIBUTE_BOOL;
  if (f->n_times == f->n)
    return ATTRIBUTE_TIME;
  if (f->n_integers == f->n)
    return ATTRIBUTE_INTEGER;
  if (f->n_integers + f->n_fractions + f->n_decimals == f->n && (f->n_decimals == 0 || f->n_points > 0))
    return ATTRIBUTE_NUMBER;
  if (f->n_keywords == f->n)
    return are_vectors(f) ? N_ATTRIBUTE_TYPES : ATTRIBUTE_KEYWORDS;
  return f->n_keyword == f->n ? ATTRIBUTE_KEYWORD : N_ATTRIBUTE_TYPES;
}

static bool is_record_key(const struct plan *p, const struct census_field *f)
{
  return f->n == p->census->n_rows && f->n_record_keys == f->n;
}

static const char *why_no_attribute(const struct plan *p, const struct census_field *f)
{
  if (f->n == 0)
    return "no value in these rows";
  if (is_mixed(f))
    return "values of several types";
  if (is_record_key(p, f))
    return "the key of the record, and of the item";
  if (are_vectors(f))
    return "a list of numbers that no space needs";
  if (f->n_lists == f->n)
    return "a list";
  return f->n_texts == f->n ? "text that is too long for an attribute" : "values of several types";
}

static bool is_taken(const struct plan *p, const char *name)
{
  for (size_t i = 0; i < p->census->n_fields; i++) {
    if (p->choices[i].use == USE_ATTRIBUTE && strcmp(p->choices[i].name, name) == 0)
      return true;
  }
  return false;
}

/* Make a name for an attribute from a path, or from its end. */
static void make_name(const char *from, char out[ATTRIBUTE_NAME_MAX + 1])
{
  size_t n = 0;

  if (isdigit((unsigned char)*from))
    out[n++] = '_';
  for (from += *from == '/'; *from && n < ATTRIBUTE_NAME_MAX; from++)
    out[n++] = isascii((unsigned char)*from) && isalnum((unsigned char)*from) ? *from : '_';
  out[n] = '\0';
}

static bool can_be_named(const struct plan *p, const char *from, char out[ATTRIBUTE_NAME_MAX + 1])
{
  make_name(from, out);
  return attribute_name_is_valid(span_of_str(out)) && !filter_is_keyword(span_of_str(out)) && !is_taken(p, out);
}

static void choose_attribute(struct plan *p, size_t i)
{
  const struct census_field *field = &p->census->fields[i];
  struct choice *choice = &p->choices[i];
  char name[ATTRIBUTE_NAME_MAX + 1];
  bool has_type = field->n > 0 && !is_mixed(field) && !is_record_key(p, field);
  enum attribute_type type = has_type ? type_of(field) : N_ATTRIBUTE_TYPES;

  if (type == N_ATTRIBUTE_TYPES)
    choice->why_not = why_no_attribute(p, field);
  else if (p->n_attributes == ATTRIBUTES_MAX)
    choice->why_not = "there are 64 attributes already";
  else if (!can_be_named(p, field->name, name) && !can_be_named(p, field->path, name))
    choice->why_not = "its name is taken, reserved or not valid: choose another";
  else {
    p->n_attributes++;
    choice->use = USE_ATTRIBUTE;
    choice->type = type;
    memcpy(choice->name, name, sizeof name);
  }
}

/* ---- Writing ---- */

/* A word that YAML reads as text needs no quotes. */
static bool is_plain(const char *text)
{
  static const char *const words[] = { "null", "true", "false", "yes", "no", "on", "off", "y", "n", NULL };

  return (isalpha((unsigned char)*text) || *text == '_') && !is_one_of(text, words) &&
         strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == strlen(text);
}

/* Does YAML forbid the character, or take it for the end of a line? Of those that JSON leaves as they are: controls,
 * U+2028, U+2029 and U+FEFF. */
static bool is_forbidden(const unsigned char *at, unsigned *code)
{
  *code = *at == 0x7f   ? 0x7f
          : *at == 0xc2 ? at[1]
          : *at < 0xe0  ? 0
                        : (*at & 15u) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u);
  return *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0) ||
         (*at >> 4 == 0xe && (*code == 0x2028 || *code == 0x2029 || *code == 0xfeff));
}

/* Write quoted text of JSON, which is UTF-8, as YAML. */
static void write_quoted(const char *json, FILE *out)
{
  static const size_t lengths[] = { [0x7] = 1, [0xc] = 2, [0xe] = 3 };
  unsigned code;

  for (const unsigned char *at = (const unsigned char *)json; *at;) {
    bool is_escaped = is_forbidden(at, &code);
    if (is_escaped)
      fprintf(out, "\\u%04x", code);
    else
      fputc(*at, out);
    at += is_escaped ? lengths[*at >> 4] : 1;
  }
}

static void write_text(const char *text, FILE *out)
{
  AUTO(json_decrefp) json_t *json = is_plain(text) ? NULL : json_string(text);
  AUTO(mem_free) char *quoted = json ? json_dumps(json, JSON_ENCODE_ANY) : NULL;

  if (quoted)
    write_quoted(quoted, out);
  else
    fputs(text, out);
}

/* Write a comment on a field. */
static void write_facts(const struct plan *p, const struct census_field *field, FILE *out)
{
  fprintf(out, "in %zu of %zu rows", field->n, p->census->n_rows);
  if (field->n)
    fprintf(out, ", such as %s", field->example);
  fputc('\n', out);
}

static void write_entry(const char *indent, const char *name, const char *value, FILE *out)
{
  fputs(indent, out);
  write_text(name, out);
  fputs(": ", out);
  write_text(value, out);
}

static bool has_use(const struct plan *p, enum use use)
{
  for (size_t i = 0; i < p->census->n_fields; i++) {
    if (p->choices[i].use == use)
      return true;
  }
  return false;
}

static void write_types(const struct plan *p, FILE *out)
{
  fputs("attributes:\n", out);
  for (size_t i = 0; i < p->census->n_fields; i++) {
    const struct choice *choice = &p->choices[i];
    if (choice->use != USE_ATTRIBUTE)
      continue;
    write_entry("  ", choice->name, attribute_type_name(choice->type), out);
    fputs("  # ", out);
    write_facts(p, &p->census->fields[i], out);
  }
}

static void write_use(const struct plan *p, enum use use, const char *name, const char *comment, FILE *out)
{
  for (size_t i = 0; i < p->census->n_fields; i++) {
    if (p->choices[i].use != use)
      continue;
    write_entry("    ", name, p->census->fields[i].path, out);
    fprintf(out, "  # %s", comment);
    write_facts(p, &p->census->fields[i], out);
  }
}

static void write_key(const struct plan *p, FILE *out)
{
  const struct mapping_census *c = p->census;

  if (c->n_keyed == c->n_rows)
    fputs("    # an item's key is that of its record\n", out);
  else if (has_use(p, USE_KEY))
    write_use(p, USE_KEY, "key", "must be different for each item; ", out);
  else
    fprintf(out, "    # key: ?  # %zu of %zu rows have a record's key, and no field looks like the item's key\n",
            c->n_keyed, c->n_rows);
}

static bool needs_codes(const struct ctl_mapping_space *space)
{
  return space->is_known && space->lengths.item_codes > 0;
}

/* Write the paths of vectors, or those of codes. */
static void write_parts(const struct plan *p, bool are_codes, FILE *out)
{
  bool has_begun = false;

  for (size_t s = 0; s < p->n_spaces; s++) {
    if (p->parts[s] == p->census->n_fields || needs_codes(&p->spaces[s]) != are_codes)
      continue;
    if (!has_begun)
      fprintf(out, "    %s:\n", are_codes ? "codes" : "vectors");
    has_begun = true;
    const struct census_field *field = &p->census->fields[p->parts[s]];
    write_entry("      ", p->spaces[s].name, field->path, out);
    fprintf(out, "  # %zu numbers, ", are_codes ? field->codes_length : field->vector_length);
    write_facts(p, field, out);
  }
}

static void write_attributes(const struct plan *p, FILE *out)
{
  fputs("    attributes:\n", out);
  for (size_t i = 0; i < p->census->n_fields; i++) {
    if (p->choices[i].use != USE_ATTRIBUTE)
      continue;
    write_entry("      ", p->choices[i].name, p->census->fields[i].path, out);
    fputc('\n', out);
  }
}

/* What is not mapped, and what is missing. */
static void write_rest(const struct plan *p, FILE *out)
{
  const struct mapping_census *c = p->census;

  for (size_t s = 0; s < p->n_spaces; s++) {
    const struct ctl_mapping_space *space = &p->spaces[s];
    size_t length = needs_codes(space) ? space->lengths.item_codes : space->lengths.item_vector;
    if (p->parts[s] == c->n_fields && space->is_known)
      fprintf(out, "# Space %s: no field has %zu %s in each value.\n", space->name, length,
              needs_codes(space) ? "codes" : "numbers");
    else if (p->parts[s] == c->n_fields)
      fprintf(out, "# Space %s: no field is a list of numbers of one length.\n", space->name);
  }
  for (size_t i = 0; i < c->n_fields; i++) {
    if (p->choices[i].use != USE_NOTHING || (c->fields[i].n == 0 && is_mixed(&c->fields[i])))
      continue;
    fputs("# Not mapped: ", out);
    write_text(c->fields[i].path, out);
    fprintf(out, ": %s; ", p->choices[i].why_not);
    write_facts(p, &c->fields[i], out);
  }
  if (c->n_more)
    fprintf(out, "# Not looked at: %zu values of further fields, or at paths that are too long.\n", c->n_more);
}

/* With a mixture, what most records are. */
static void write_envelope(const struct mapping_census *c, FILE *out)
{
  if (c->n_envelopes < c->n_bare)
    fprintf(out, "    # envelope: debezium  # %zu records are in one, and will be refused\n", c->n_envelopes);
  else if (c->n_bare > 0)
    fprintf(out, "    envelope: debezium  # %zu records are in one; %zu are not, and will be refused\n", c->n_envelopes,
            c->n_bare);
  else
    fprintf(out, "    envelope: debezium  # %zu records are in one\n", c->n_envelopes);
}

static void write_all(const struct plan *p, FILE *out)
{
  if (has_use(p, USE_ATTRIBUTE))
    write_types(p, out);
  fputs("catalogue:\n  mapping:\n", out);
  write_key(p, out);
  write_parts(p, false, out);
  write_parts(p, true, out);
  if (has_use(p, USE_ATTRIBUTE))
    write_attributes(p, out);
  write_use(p, USE_DELETED, "deleted", "", out);
  if (p->census->n_envelopes > 0)
    write_envelope(p->census, out);
  write_rest(p, out);
}

err_t ctl_mapping_write(const struct mapping_census *census, const struct ctl_mapping_space *spaces, size_t n_spaces,
                        FILE *out)
{
  AUTO(mem_free) struct choice *choices = NULL;
  AUTO(mem_free) size_t *parts = NULL;
  struct plan p = { .census = census, .spaces = spaces, .n_spaces = n_spaces };

  TRY(mem_array(census->n_fields + 1, sizeof *choices, &choices));
  TRY(mem_array(n_spaces + 1, sizeof *parts, &parts));
  p.choices = choices;
  p.parts = parts;
  choose_key(&p);
  choose_deleted(&p);
  for (size_t s = 0; s < n_spaces; s++)
    choose_part(&p, s);
  for (size_t i = 0; i < census->n_fields; i++) {
    if (choices[i].use == USE_NOTHING)
      choose_attribute(&p, i);
  }
  write_all(&p, out);
  return ERR_OK;
}
