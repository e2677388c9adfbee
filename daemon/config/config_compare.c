/* SPDX-License-Identifier: Apache-2.0 */
/* In what two configurations differ, setting by setting. */
#include <stdio.h>
#include <string.h>

#include "daemon/config/config_settings.h"

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
    are_equal = are_texts_equal(a->items[i].name, b->items[i].name) &&
                are_texts_equal(a->items[i].value, b->items[i].value);
  return are_equal;
}

/* The word that a choice was made by. */
static const char *word_of(const struct config *c, size_t index)
{
  return c->given[index] ? c->given[index] : settings[index].default_text;
}

static bool are_equal(const struct config *a, const struct config *b, size_t index)
{
  const struct setting *s = &settings[index];
  const void *in_a = (const char *)a + s->offset;
  const void *in_b = (const char *)b + s->offset;

  switch (s->type) {
  case SETTING_NUMBER:
    return *(const uint64_t *)in_a == *(const uint64_t *)in_b;
  case SETTING_BOOL:
    return *(const bool *)in_a == *(const bool *)in_b;
  case SETTING_CHOICE:
    return are_texts_equal(word_of(a, index), word_of(b, index));
  case SETTING_LIST:
  case SETTING_PATTERNS:
    return are_lists_equal(in_a, in_b);
  case SETTING_PROPERTIES:
    return are_properties_equal(in_a, in_b);
  case SETTING_TEXT:
  case SETTING_TOPIC:
  case SETTING_PATH:
  case SETTING_ADDRESS:
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

/* Spaces of `a` that `b` does not have, or has otherwise. */
static void compare_spaces(const struct config *a, const struct config *b, bool only_absent,
                           void (*differs)(void *context, const char *setting), void *context)
{
  char shown[SETTING_PATH_BYTES];

  for (size_t i = 0; i < a->n_spaces; i++) {
    const struct config_space *other = find_space(b, a->spaces[i].name);
    if (other && (only_absent || (other->dim == a->spaces[i].dim && other->weight == a->spaces[i].weight &&
                                  are_texts_equal(other->model_path, a->spaces[i].model_path))))
      continue;
    snprintf(shown, sizeof shown, "spaces.%s", a->spaces[i].name);
    differs(context, shown);
  }
}

void config_compare(const struct config *a, const struct config *b,
                    void (*differs)(void *context, const char *setting), void *context)
{
  for (size_t i = 0; i < n_settings; i++) {
    if (!setting_is_in_space(&settings[i]) && !are_equal(a, b, i))
      differs(context, settings[i].path);
  }
  compare_spaces(a, b, false, differs, context);
  compare_spaces(b, a, true, differs, context);
}
