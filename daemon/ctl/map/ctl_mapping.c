/* SPDX-License-Identifier: Apache-2.0 */
/* Write a plan as YAML, which has no character that would leave its place. */
#include "daemon/ctl/map/ctl_mapping.h"

#include <ctype.h>
#include <jansson.h>

#include "base/attributes.h"
#include "base/mem.h"
#include "daemon/ctl/map/ctl_mapping_plan.h"

/* A word that YAML reads as text needs no quotes. */
static bool is_plain(const char *text)
{
  static const char *const words[] = { "null", "true", "false", "yes", "no", "on", "off", "y", "n", NULL };

  return (isalpha((unsigned char)*text) || *text == '_') && !ctl_mapping_is_one_of(text, words) &&
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
static void write_facts(const struct ctl_mapping_plan *p, const struct census_field *field, FILE *out)
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

static bool has_use(const struct ctl_mapping_plan *p, enum ctl_mapping_use use)
{
  for (size_t i = 0; i < p->census->n_fields; i++) {
    if (p->choices[i].use == use)
      return true;
  }
  return false;
}

static void write_types(const struct ctl_mapping_plan *p, FILE *out)
{
  fputs("attributes:\n", out);
  for (size_t i = 0; i < p->census->n_fields; i++) {
    const struct ctl_mapping_choice *choice = &p->choices[i];
    if (choice->use != CTL_MAPPING_ATTRIBUTE)
      continue;
    write_entry("  ", choice->name, attribute_type_name(choice->type), out);
    fputs("  # ", out);
    write_facts(p, &p->census->fields[i], out);
  }
}

static void write_use(const struct ctl_mapping_plan *p, enum ctl_mapping_use use, const char *name, const char *comment,
                      FILE *out)
{
  for (size_t i = 0; i < p->census->n_fields; i++) {
    if (p->choices[i].use != use)
      continue;
    write_entry("    ", name, p->census->fields[i].path, out);
    fprintf(out, "  # %s", comment);
    write_facts(p, &p->census->fields[i], out);
  }
}

static void write_key(const struct ctl_mapping_plan *p, FILE *out)
{
  const struct mapping_census *c = p->census;

  if (c->n_keyed == c->n_rows)
    fputs("    # an item's key is that of its record\n", out);
  else if (has_use(p, CTL_MAPPING_KEY))
    write_use(p, CTL_MAPPING_KEY, "key", "must be different for each item; ", out);
  else
    fprintf(out, "    # key: ?  # %zu of %zu rows have a record's key, and no field looks like the item's key\n",
            c->n_keyed, c->n_rows);
}

/* Write the paths of vectors, or those of codes. */
static void write_parts(const struct ctl_mapping_plan *p, bool are_codes, FILE *out)
{
  bool has_begun = false;

  for (size_t s = 0; s < p->n_spaces; s++) {
    if (p->parts[s] == p->census->n_fields || ctl_mapping_needs_codes(&p->spaces[s]) != are_codes)
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

static void write_attributes(const struct ctl_mapping_plan *p, FILE *out)
{
  fputs("    attributes:\n", out);
  for (size_t i = 0; i < p->census->n_fields; i++) {
    if (p->choices[i].use != CTL_MAPPING_ATTRIBUTE)
      continue;
    write_entry("      ", p->choices[i].name, p->census->fields[i].path, out);
    fputc('\n', out);
  }
}

/* What is not mapped, and what is missing. */
static void write_rest(const struct ctl_mapping_plan *p, FILE *out)
{
  const struct mapping_census *c = p->census;

  for (size_t s = 0; s < p->n_spaces; s++) {
    const struct ctl_mapping_space *space = &p->spaces[s];
    size_t length = ctl_mapping_needs_codes(space) ? space->lengths.item_codes : space->lengths.item_vector;
    if (p->parts[s] == c->n_fields && space->is_known)
      fprintf(out, "# Space %s: no field has %zu %s in each value.\n", space->name, length,
              ctl_mapping_needs_codes(space) ? "codes" : "numbers");
    else if (p->parts[s] == c->n_fields)
      fprintf(out, "# Space %s: no field is a list of numbers of one length.\n", space->name);
  }
  for (size_t i = 0; i < c->n_fields; i++) {
    if (p->choices[i].use != CTL_MAPPING_NOTHING)
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

static void write_all(const struct ctl_mapping_plan *p, FILE *out)
{
  if (has_use(p, CTL_MAPPING_ATTRIBUTE))
    write_types(p, out);
  fputs("catalogue:\n  mapping:\n", out);
  write_key(p, out);
  write_parts(p, false, out);
  write_parts(p, true, out);
  if (has_use(p, CTL_MAPPING_ATTRIBUTE))
    write_attributes(p, out);
  write_use(p, CTL_MAPPING_DELETED, "deleted", "", out);
  if (p->census->n_envelopes > 0)
    write_envelope(p->census, out);
  write_rest(p, out);
}

err_t ctl_mapping_write(const struct mapping_census *census, const struct ctl_mapping_space *spaces, size_t n_spaces,
                        FILE *out)
{
  AUTO(ctl_mapping_plan_fini) struct ctl_mapping_plan p = { 0 };

  TRY(ctl_mapping_plan_make(census, spaces, n_spaces, &p));
  write_all(&p, out);
  return ERR_OK;
}
