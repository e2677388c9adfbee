/* SPDX-License-Identifier: Apache-2.0 */
/* The table of error codes, and the newest failure of each thread. */
#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/secrets.h"

#define CLASS_NONE   ERR_CLASS_NONE
#define CLASS_RETRY  ERR_CLASS_RETRY
#define CLASS_REJECT ERR_CLASS_REJECT
#define CLASS_FATAL  ERR_CLASS_FATAL

static const struct {
  enum err_class class_;
  const char *text;
} rows[] = {
#define ERR_ROW(code, class_, text) [code] = { CLASS_##class_, text },
  ERR_LIST(ERR_ROW)
#undef ERR_ROW
};

static _Thread_local char message[1024];
static _Thread_local char origin[128];

enum err_class err_class(err_code_t code)
{
  return rows[code].class_;
}

const char *err_text(err_code_t code)
{
  return rows[code].text;
}

const char *err_message(void)
{
  return message;
}

const char *err_origin(void)
{
  return origin;
}

err_code_t err_set(err_code_t code, const char *file, int line, const char *format, ...)
{
  char text[sizeof message]; /* written here first, because the arguments may contain the old message */
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  secrets_hide(text, sizeof text);
  memcpy(message, text, sizeof message);
  snprintf(origin, sizeof origin, "%s:%d", file, line);
  return code;
}

void err_keep(err_code_t code, struct err_kept *out)
{
  static_assert(sizeof out->message == sizeof message && sizeof out->origin == sizeof origin, "nothing is cut");
  out->code = code;
  if (code == ERR_OK)
    return;
  memcpy(out->message, message, sizeof message);
  memcpy(out->origin, origin, sizeof origin);
}

err_t err_give_back(const struct err_kept *kept)
{
  if (kept->code == ERR_OK)
    return ERR_OK;
  memcpy(message, kept->message, sizeof message);
  memcpy(origin, kept->origin, sizeof origin);
  return kept->code;
}
