/* SPDX-License-Identifier: Apache-2.0 */
/* Decide what each field is for, by what its values could be read as, and by its name. */
#include "daemon/ctl/map/ctl_mapping_plan.h"

#include <assert.h>
#include <ctype.h>

#include "base/attributes.h"
#include "base/mem.h"
#include "engine/filter/filter.h"

/* Vectors as text are taken from so many numbers on, and only if a space needs that many: other text may look alike. */
enum { TEXT_VECTOR_MIN = 8, TEXT_CODES_MIN = 24, LENGTH_MIN = 2 };

static_assert(ATTRIBUTES_MAX == 64, "as a text below says");

/* ---- Key and deletes ---- */

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

  if (ctl_mapping_is_one_of(field->name, names))
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

static void choose_key(struct ctl_mapping_plan *p)
{
  const struct mapping_census *c = p->census;
  struct ctl_mapping_choice *best = NULL;
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
    best->use = CTL_MAPPING_KEY;
}

static void choose_deleted(struct ctl_mapping_plan *p)
{
  static const char *const names[] = { "deleted",   "is_deleted", "isDeleted",  "__deleted",  "_deleted", "deleted_at",
                                       "deletedAt", "removed",    "is_removed", "removed_at", NULL };

  for (size_t i = 0; i < p->census->n_fields; i++) {
    const struct census_field *field = &p->census->fields[i];
    bool is_named = !is_deep(field) && !is_mixed(field) && ctl_mapping_is_one_of(field->name, names);
    if (is_named && field->n_flags == field->n && p->choices[i].use == CTL_MAPPING_NOTHING) {
      p->choices[i].use = CTL_MAPPING_DELETED;
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
  if (ctl_mapping_needs_codes(space))
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

static void choose_part(struct ctl_mapping_plan *p, size_t space)
{
  size_t n_fields = p->census->n_fields;
  int best_rank = 0;

  p->parts[space] = n_fields;
  for (size_t i = 0; i < n_fields; i++) {
    const struct census_field *field = &p->census->fields[i];
    bool is_free = p->choices[i].use == CTL_MAPPING_NOTHING || p->choices[i].use == CTL_MAPPING_PART;
    int rank = is_free && suits(&p->spaces[space], field) ? rank_part(&p->spaces[space], field) : 0;
    if (rank > best_rank) {
      best_rank = rank;
      p->parts[space] = i;
    }
  }
  if (best_rank > 0)
    p->choices[p->parts[space]].use = CTL_MAPPING_PART;
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

static bool is_record_key(const struct ctl_mapping_plan *p, const struct census_field *f)
{
  return f->n == p->census->n_rows && f->n_record_keys == f->n;
}

static const char *why_no_attribute(const struct ctl_mapping_plan *p, const struct census_field *f)
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

static bool is_taken(const struct ctl_mapping_plan *p, const char *name)
{
  for (size_t i = 0; i < p->census->n_fields; i++) {
    if (p->choices[i].use == CTL_MAPPING_ATTRIBUTE && strcmp(p->choices[i].name, name) == 0)
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

static bool can_be_named(const struct ctl_mapping_plan *p, const char *from, char out[ATTRIBUTE_NAME_MAX + 1])
{
  make_name(from, out);
  return attribute_name_is_valid(span_of_str(out)) && !filter_is_keyword(span_of_str(out)) && !is_taken(p, out);
}

static void choose_attribute(struct ctl_mapping_plan *p, size_t i)
{
  const struct census_field *field = &p->census->fields[i];
  struct ctl_mapping_choice *choice = &p->choices[i];
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
    choice->use = CTL_MAPPING_ATTRIBUTE;
    choice->type = type;
    memcpy(choice->name, name, sizeof name);
  }
}

/* ---- The plan ---- */

static bool is_object_alone(const struct census_field *field)
{
  return field->n == 0 && is_mixed(field);
}

static void choose_all(struct ctl_mapping_plan *p)
{
  const struct mapping_census *c = p->census;

  for (size_t i = 0; i < c->n_fields; i++)
    p->choices[i].use = is_object_alone(&c->fields[i]) ? CTL_MAPPING_OBJECT : CTL_MAPPING_NOTHING;
  choose_key(p);
  choose_deleted(p);
  for (size_t s = 0; s < p->n_spaces; s++)
    choose_part(p, s);
  for (size_t i = 0; i < c->n_fields; i++) {
    if (p->choices[i].use == CTL_MAPPING_NOTHING)
      choose_attribute(p, i);
  }
}

err_t ctl_mapping_plan_make(const struct mapping_census *census, const struct ctl_mapping_space *spaces,
                            size_t n_spaces, struct ctl_mapping_plan *out)
{
  *out = (struct ctl_mapping_plan){ .census = census, .spaces = spaces, .n_spaces = n_spaces };
  TRY(mem_array(census->n_fields + 1, sizeof *out->choices, &out->choices));
  TRY(mem_array(n_spaces + 1, sizeof *out->parts, &out->parts));
  choose_all(out);
  return ERR_OK;
}

void ctl_mapping_plan_fini(struct ctl_mapping_plan *p)
{
  mem_free(&p->choices);
  mem_free(&p->parts);
}
