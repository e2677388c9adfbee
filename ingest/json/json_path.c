/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting paths, and walking along them. */
#include "ingest/json/json_path.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

static err_t fail(struct span text, const char *reason)
{
  FAIL(ERR_CONFIG, "expects a path such as `price.amount` or `/price/amount`, not %s: %s", log_quote(text), reason);
}

static err_t verify_text(struct span text)
{
  if (text.n < 1 || text.n > JSON_PATH_TEXT_MAX)
    return fail(text, "a path has 1 to 256 bytes");
  if (memchr(text.p, 0, text.n) || !utf8_is_valid(text))
    return fail(text, "a path is UTF-8 without zero bytes");
  return ERR_OK;
}

/* Replace ~1 and ~0 in a step, in place. Returns false if another character follows a ~. */
static bool unescape(char *step)
{
  char *to = step;

  for (const char *from = step; *from; from++) {
    if (*from == '~' && from[1] != '0' && from[1] != '1')
      return false;
    if (*from == '~')
      *to++ = *++from == '0' ? '~' : '/';
    else
      *to++ = *from;
  }
  *to = '\0';
  return true;
}

static err_t split(struct json_path *path)
{
  bool is_pointer = *path->buffer == '/';
  char *rest = path->buffer + is_pointer, *step;
  struct span text = span_of_str(path->text);

  while ((step = strsep(&rest, is_pointer ? "/" : "."))) {
    if (path->n_steps == JSON_PATH_STEPS_MAX)
      return fail(text, "it has more than 16 steps");
    if (!*step)
      return fail(text, "a step is empty");
    if (is_pointer && !unescape(step))
      return fail(text, "in a pointer, ~ is written ~0");
    path->steps[path->n_steps++] = step;
  }
  return ERR_OK;
}

err_t json_path_init(struct span text, struct json_path *out)
{
  AUTO(json_path_fini) struct json_path path = { 0 };

  TRY(verify_text(text));
  TRY(mem_copy(text, &path.text));
  TRY(mem_copy(text, &path.buffer));
  TRY(split(&path));
  *out = path;
  path = (struct json_path){ 0 };
  return ERR_OK;
}

void json_path_fini(struct json_path *path)
{
  mem_free(&path->text);
  mem_free(&path->buffer);
  path->n_steps = 0;
}

err_t json_path_verify(struct span text)
{
  AUTO(json_path_fini) struct json_path path = { 0 };

  return json_path_init(text, &path);
}

static json_t *step_into_list(const json_t *list, const char *step)
{
  size_t n = strlen(step);

  if (n > 9 || strspn(step, "0123456789") != n)
    return NULL;
  return json_array_get(list, strtoul(step, NULL, 10));
}

json_t *json_path_find(const struct json_path *path, json_t *root)
{
  json_t *at = root;

  for (size_t i = 0; at && !json_is_null(at) && i < path->n_steps; i++)
    at = json_is_array(at) ? step_into_list(at, path->steps[i]) : json_object_get(at, path->steps[i]);
  return at;
}
