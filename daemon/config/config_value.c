/* SPDX-License-Identifier: Apache-2.0 */
/* Parse the text of a setting, check it and store it as the type that the table says. */
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/query.h"
#include "daemon/config/config_fields.h"
#include "daemon/config/config_settings.h"
#include "daemon/config/config_url.h"
#include "ingest/json/json_path.h"

enum { ADDRESS_BYTES_MAX = 64, HOST_BYTES_MAX = 253, PORT_MAX = 65535 };

static bool has_control_bytes(struct span text)
{
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] < 0x20 || text.p[i] == 0x7f)
      return true;
  }
  return false;
}

static bool has_name_bytes_only(struct span text)
{
  for (size_t i = 0; i < text.n; i++) {
    uint8_t c = text.p[i];
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
      return false;
  }
  return true;
}

static bool parse_number(struct span text, uint64_t *out)
{
  uint64_t value = 0;

  for (size_t i = 0; i < text.n; i++) {
    uint8_t c = text.p[i];
    if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
      return false;
  }
  *out = value;
  return text.n > 0;
}

static err_t set_number(const struct setting *s, uint64_t *out, struct span text)
{
  uint64_t value;

  if (!parse_number(text, &value) || value < s->min || value > s->max)
    FAIL(ERR_CONFIG, "expects a whole number from %llu to %llu, not %s", (unsigned long long)s->min,
         (unsigned long long)s->max, log_quote(text));
  *out = value;
  return ERR_OK;
}

static err_t set_bool(bool *out, struct span text)
{
  bool is_true = span_equal(text, span_of_str("true")) || span_equal(text, span_of_str("on"));

  if (!is_true && !span_equal(text, span_of_str("false")) && !span_equal(text, span_of_str("off")))
    FAIL(ERR_CONFIG, "expects true or false, not %s", log_quote(text));
  *out = is_true;
  return ERR_OK;
}

void setting_print_words(const struct setting *s, char out[SETTING_WORDS_BYTES])
{
  size_t n = 0;

  for (const struct setting_word *w = s->words; w->word; w++) {
    n += (size_t)snprintf(out + n, SETTING_WORDS_BYTES - n, "%s`%s`", n ? ", " : "", w->word);
    assert(n < SETTING_WORDS_BYTES);
  }
}

static err_t set_choice(const struct setting *s, unsigned *out, struct span text)
{
  char words[SETTING_WORDS_BYTES];

  for (const struct setting_word *w = s->words; w->word; w++) {
    if (span_equal(text, span_of_str(w->word))) {
      *out = w->value;
      return ERR_OK;
    }
  }
  setting_print_words(s, words);
  FAIL(ERR_CONFIG, "expects one of %s, not %s", words, log_quote(text));
}

static err_t set_either(const struct setting *s, bool *out, struct span text)
{
  unsigned value;

  TRY(set_choice(s, &value, text));
  *out = value;
  return ERR_OK;
}

static err_t verify_text(const struct setting *s, struct span text)
{
  if (text.n < s->min || text.n > s->max)
    FAIL(ERR_CONFIG, "expects a string of %llu to %llu bytes, not of %zu", (unsigned long long)s->min,
         (unsigned long long)s->max, text.n);
  if (has_control_bytes(text))
    FAIL(ERR_CONFIG, "expects a string without control characters, not %s", log_quote(text));
  return ERR_OK;
}

static err_t verify_topic(struct span text)
{
  bool is_dots = span_equal(text, span_of_str(".")) || span_equal(text, span_of_str(".."));

  if (text.n < 1 || text.n > TOPIC_NAME_MAX || is_dots || !has_name_bytes_only(text))
    FAIL(ERR_CONFIG, "expects a topic (1 to %d of A-Z a-z 0-9 . _ -), not %s", TOPIC_NAME_MAX, log_quote(text));
  return ERR_OK;
}

/* A pattern is a topic's name that may also contain `*` and `?`. */
static err_t verify_pattern(struct span text)
{
  char name[TOPIC_NAME_MAX];
  bool is_short = text.n >= 1 && text.n <= TOPIC_NAME_MAX;

  for (size_t i = 0; is_short && i < text.n; i++)
    name[i] = (char)(text.p[i] == '*' || text.p[i] == '?' ? 'x' : text.p[i]);
  if (!is_short || !has_name_bytes_only(span_of(name, text.n)))
    FAIL(ERR_CONFIG, "expects topics (1 to %d of A-Z a-z 0-9 . _ - and the wildcards * ?), not %s", TOPIC_NAME_MAX,
         log_quote(text));
  return ERR_OK;
}

static bool is_host(const char *text)
{
  struct in_addr v4;
  struct in6_addr v6;
  char host[ADDRESS_BYTES_MAX];
  size_t n = strlen(text);

  if (text[0] != '[')
    return inet_pton(AF_INET, text, &v4) == 1;
  if (text[n - 1] != ']')
    return false;
  memcpy(host, text + 1, n - 2);
  host[n - 2] = '\0';
  return inet_pton(AF_INET6, host, &v6) == 1;
}

static err_t verify_address(struct span text)
{
  char host[ADDRESS_BYTES_MAX + 1] = { 0 };
  uint64_t port;
  char *colon = NULL;

  if (text.n <= ADDRESS_BYTES_MAX && !has_control_bytes(text)) {
    memcpy(host, text.p, text.n);
    colon = strrchr(host, ':');
  }
  bool is_port = colon && parse_number(span_of_str(colon + 1), &port) && port >= 1 && port <= PORT_MAX;
  if (is_port)
    *colon = '\0';
  if (!is_port || colon - host < 2 || !is_host(host))
    FAIL(ERR_CONFIG, "expects a numeric address and a port from 1 to %d, like 127.0.0.1:8321 or [::1]:8321, not %s",
         PORT_MAX, log_quote(text));
  return ERR_OK;
}

static bool is_v6(const char *text)
{
  struct in6_addr v6;

  return inet_pton(AF_INET6, text, &v6) == 1;
}

/* Can a request have this host? It may have a port, which does not matter, and numbers may be in brackets. */
static bool is_host_name(struct span text)
{
  char host[HOST_BYTES_MAX + 1] = { 0 };
  uint64_t port;

  if (text.n > HOST_BYTES_MAX)
    return false;
  memcpy(host, text.p, text.n);
  if (is_v6(host))
    return true;
  char *colon = strrchr(host, ':');
  if (colon && parse_number(span_of_str(colon + 1), &port) && port <= PORT_MAX)
    *colon = '\0';
  size_t n = strlen(host);
  if (host[0] != '[' || host[n - 1] != ']')
    return n > 0 && has_name_bytes_only(span_of_str(host));
  host[n - 1] = '\0';
  return is_v6(host + 1);
}

static err_t verify_host(struct span text)
{
  if (!is_host_name(text))
    FAIL(ERR_CONFIG,
         "expects names such as sluice.example.org, each in full, without `http://`, a path and `*`; not %s",
         log_quote(text));
  return ERR_OK;
}

static err_t set_text(char **out, const char *prefix, struct span text)
{
  char *copy;
  size_t n_prefix = strlen(prefix);

  TRY(mem_array(n_prefix + text.n + 1, 1, &copy));
  memcpy(copy, prefix, n_prefix); /* NOLINT(bugprone-not-null-terminated-result): mem_array() gives zeros */
  memcpy(copy + n_prefix, text.p, text.n);
  mem_free(out);
  *out = copy;
  return ERR_OK;
}

static err_t add_to_list(struct config_list *list, struct span text)
{
  char *copy;

  if (list->n == LIST_MAX)
    FAIL(ERR_CONFIG, "expects at most %d elements", LIST_MAX);
  if (!list->items)
    TRY(mem_array(LIST_MAX, sizeof *list->items, &list->items));
  TRY(mem_copy(text, &copy));
  list->items[list->n++] = copy;
  return ERR_OK;
}

/* No message may show it. */
static err_t verify_secret(const struct setting *s, struct span text)
{
  if (text.n < s->min || text.n > s->max)
    FAIL(ERR_CONFIG, "expects a secret of %llu to %llu bytes, not of %zu", (unsigned long long)s->min,
         (unsigned long long)s->max, text.n);
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] < ' ' || text.p[i] == 0x7f)
      FAIL(ERR_CONFIG, "expects a secret without control characters, but byte %zu of %zu is one", i + 1, text.n);
  }
  return ERR_OK;
}

err_t setting_set(const struct setting *s, void *base, const char *directory, struct span text)
{
  void *field = (char *)base + s->offset;

  switch (s->type) {
  case SETTING_NUMBER:
    return set_number(s, field, text);
  case SETTING_BOOL:
    return set_bool(field, text);
  case SETTING_CHOICE:
    return set_choice(s, field, text);
  case SETTING_EITHER:
    return set_either(s, field, text);
  case SETTING_SECRET:
    TRY(verify_secret(s, text));
    return set_text(field, "", text);
  case SETTING_TEXT:
    TRY(verify_text(s, text));
    return set_text(field, "", text);
  case SETTING_TOPIC:
    if (text.n > 0 || !s->default_text || *s->default_text) /* a topic that is empty by default may be none */
      TRY(verify_topic(text));
    return set_text(field, "", text);
  case SETTING_PATH:
    TRY(verify_text(s, text));
    return set_text(field, text.n == 0 || text.p[0] == '/' ? "" : directory, text);
  case SETTING_ADDRESS:
    TRY(verify_address(text));
    return set_text(field, "", text);
  case SETTING_URL:
    TRY(verify_text(s, text));
    if (text.n > 0)
      TRY(config_url_verify(text));
    return set_text(field, "", text);
  case SETTING_HOSTS:
    TRY(verify_text(s, text));
    TRY(verify_host(text));
    return add_to_list(field, text);
  case SETTING_PATTERNS:
    TRY(verify_pattern(text));
    return add_to_list(field, text);
  case SETTING_FIELD:
    if (text.n > 0)
      TRY(json_path_verify(text));
    return set_text(field, "", text);
  case SETTING_PROPERTIES:
  case SETTING_ATTRIBUTES:
  case SETTING_FIELDS:
    break; /* a map has no text */
  }
  FAIL(ERR_CONFIG, "expects a map");
}

err_t setting_verify_space(struct span name)
{
  if (name.n < 1 || name.n > SPACE_NAME_MAX || !has_name_bytes_only(name))
    FAIL(ERR_CONFIG, "expects the name of a space (1 to %d of A-Z a-z 0-9 . _ -), not %s", SPACE_NAME_MAX,
         log_quote(name));
  return ERR_OK;
}

static void free_list(struct config_list *list)
{
  for (size_t i = 0; i < list->n; i++)
    mem_free(&list->items[i]);
  mem_free(&list->items);
}

static void free_properties(struct kafka_properties *properties)
{
  struct kafka_property *items = (struct kafka_property *)properties->items; /* allocated here */

  for (size_t i = 0; i < properties->n; i++) {
    mem_free(&items[i].name);
    mem_free(&items[i].value);
  }
  mem_free(&items);
}

void setting_free(const struct setting *s, void *base)
{
  void *field = (char *)base + s->offset;

  switch (s->type) {
  case SETTING_TEXT:
  case SETTING_SECRET:
  case SETTING_TOPIC:
  case SETTING_PATH:
  case SETTING_ADDRESS:
  case SETTING_URL:
  case SETTING_FIELD:
    mem_free(field);
    break;
  case SETTING_HOSTS:
  case SETTING_PATTERNS:
    free_list(field);
    break;
  case SETTING_PROPERTIES:
    free_properties(field);
    break;
  case SETTING_ATTRIBUTES:
    attributes_free(field);
    break;
  case SETTING_FIELDS:
    config_fields_free(field);
    break;
  case SETTING_NUMBER:
  case SETTING_BOOL:
  case SETTING_CHOICE:
  case SETTING_EITHER:
    break;
  }
}
