/* SPDX-License-Identifier: Apache-2.0 */
/* Compare two configurations by the table of settings: a reload names what has changed. */
#include <stdio.h>
#include <string.h>

#include "daemon/config/config_settings.h"
#include "ingest/kafka/kafka_renewal.h"

static bool are_texts_equal(const char *a, const char *b)
{
  return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool are_lists_equal(const struct config_list *a, const struct config_list *b)
{
  bool are_equal = a->n == b->n;

  for (size_t i = 0; are_equal && i < a->n; i++)
    are_equal = are_texts_equal(a->items[i], b->items[i]);
  return are_equal;
}

static bool are_properties_equal(const struct kafka_properties *a, const struct kafka_properties *b)
{
  bool are_equal = a->n == b->n;

  for (size_t i = 0; are_equal && i < a->n; i++)
    are_equal =
        are_texts_equal(a->items[i].name, b->items[i].name) && are_texts_equal(a->items[i].value, b->items[i].value);
  return are_equal;
}

static bool is_credential(const char *property)
{
  return kafka_renewal_is_about(property) || strcmp(property, "sasl.username") == 0 ||
         strcmp(property, "sasl.password") == 0;
}

bool config_differs_in_credentials_at_most(const struct kafka_properties *a, const struct kafka_properties *b)
{
  bool is_fine = a->n == b->n;

  for (size_t i = 0; is_fine && i < a->n; i++)
    is_fine = are_texts_equal(a->items[i].name, b->items[i].name) &&
              (is_credential(a->items[i].name) || are_texts_equal(a->items[i].value, b->items[i].value));
  return is_fine;
}

static bool are_attributes_equal(const struct attributes *a, const struct attributes *b)
{
  bool are_equal = a->n == b->n;

  for (size_t i = 0; are_equal && i < a->n; i++)
    are_equal = span_equal(a->v[i].name, b->v[i].name) && a->v[i].type == b->v[i].type;
  return are_equal;
}

static bool are_fields_equal(const struct config_fields *a, const struct config_fields *b)
{
  bool are_equal = a->n == b->n;

  for (size_t i = 0; are_equal && i < a->n; i++)
    are_equal = are_texts_equal(a->v[i].name, b->v[i].name) && are_texts_equal(a->v[i].path, b->v[i].path);
  return are_equal;
}

/* a, b  the structs that `offset` is relative to */
static bool are_values_equal(const struct setting *s, const void *a, const void *b)
{
  const void *in_a = (const char *)a + s->offset;
  const void *in_b = (const char *)b + s->offset;

  switch (s->type) {
  case SETTING_NUMBER:
    return *(const uint64_t *)in_a == *(const uint64_t *)in_b;
  case SETTING_CHOICE:
    return *(const unsigned *)in_a == *(const unsigned *)in_b;
  case SETTING_BOOL:
  case SETTING_EITHER:
    return *(const bool *)in_a == *(const bool *)in_b;
  case SETTING_HOSTS:
  case SETTING_PATTERNS:
    return are_lists_equal(in_a, in_b);
  case SETTING_PROPERTIES:
    return are_properties_equal(in_a, in_b);
  case SETTING_ATTRIBUTES:
    return are_attributes_equal(in_a, in_b);
  case SETTING_FIELDS:
    return are_fields_equal(in_a, in_b);
  case SETTING_TEXT:
  case SETTING_SECRET:
  case SETTING_TOPIC:
  case SETTING_PATH:
  case SETTING_ADDRESS:
  case SETTING_URL:
  case SETTING_FIELD:
    break;
  }
  return are_texts_equal(*(char *const *)in_a, *(char *const *)in_b);
}

static const struct config_space *find_space(const struct config *c, const char *name)
{
  for (size_t i = 0; i < c->n_spaces; i++) {
    if (strcmp(c->spaces[i].name, name) == 0)
      return &c->spaces[i];
  }
  return NULL;
}

static bool are_spaces_equal(const struct config_space *a, const struct config_space *b)
{
  for (size_t i = 0; i < n_settings; i++) {
    if (setting_is_in_space(&settings[i]) && !are_values_equal(&settings[i], a, b))
      return false;
  }
  return true;
}

/* Report spaces of `a` that `b` lacks and, unless only_absent, those that differ in `b`. */
static void compare_spaces(const struct config *a, const struct config *b, bool only_absent,
                           void (*differs)(void *context, const char *setting), void *context)
{
  char shown[SETTING_PATH_BYTES];

  for (size_t i = 0; i < a->n_spaces; i++) {
    const struct config_space *other = find_space(b, a->spaces[i].name);
    if (other && (only_absent || are_spaces_equal(&a->spaces[i], other)))
      continue;
    snprintf(shown, sizeof shown, "spaces.%s", a->spaces[i].name);
    differs(context, shown);
  }
}

void config_compare(const struct config *a, const struct config *b, void (*differs)(void *context, const char *setting),
                    void *context)
{
  for (size_t i = 0; i < n_settings; i++) {
    if (!setting_is_in_space(&settings[i]) && !are_values_equal(&settings[i], a, b))
      differs(context, settings[i].path);
  }
  compare_spaces(a, b, false, differs, context);
  compare_spaces(b, a, true, differs, context);
}
