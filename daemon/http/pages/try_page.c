/* SPDX-License-Identifier: Apache-2.0 */
/* Print the form and the answer as HTML, complete without scripts. The script of the status page takes the section
 * #tried out of it. */
#include "daemon/http/pages/try_page.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/print/html_print.h"
#include "daemon/http/pages/try_hits.h"
#include "daemon/http/pages/url_key.h"

/* ---- The form ---- */

static bool read_space(const char *text, char out[SPACE_NAME_MAX + 1])
{
  uint8_t name[ITEM_KEY_MAX];
  size_t n;

  if (!url_key_decode(text, name, &n) || n > SPACE_NAME_MAX || memchr(name, 0, n))
    return false;
  memcpy(out, name, n);
  out[n] = '\0';
  return true;
}

static bool read_k(const char *text, uint32_t *k)
{
  char *end;
  unsigned long value = strtoul(text, &end, 10);

  if (*text < '0' || *text > '9' || *end || value < 1 || value > TRIAL_K_MAX)
    return false;
  *k = (uint32_t)value;
  return true;
}

const char *try_form_read(const char *key, const char *space, const char *k, struct try_form *out)
{
  *out = (struct try_form){ .k = TRY_K_DEFAULT };
  bool has_key = key && url_key_decode(key, out->key, &out->n_key);
  bool has_space = space && read_space(space, out->space);
  bool has_k = !k || read_k(k, &out->k);

  if (!has_key) {
    out->n_key = 0;
    return "key: expects 1 to 256 bytes, percent-coded";
  }
  if (!has_space)
    return "space: expects the name of a space";
  return has_k ? NULL : "k: expects a number from 1 to 100";
}
_Static_assert(TRIAL_K_MAX == 100 && ITEM_KEY_MAX == 256, "the messages say so");

/* Print the key if it is text. */
static void print_key(FILE *out, const struct try_form *form)
{
  json_t *text = form ? json_stringn((const char *)form->key, form->n_key) : NULL;

  html_print_text(out, text ? json_string_value(text) : "");
  json_decref(text);
}

/* Print a space as an option. A generation that is not current has its number. */
static void print_space(FILE *out, const struct engine_space_info *info, const char *chosen)
{
  char name[SPACE_NAME_MAX + 16];

  if (info->is_current)
    snprintf(name, sizeof name, "%s", info->name);
  else
    snprintf(name, sizeof name, "%s@%u", info->name, info->generation);
  fprintf(out, "<option%s>", strcmp(chosen, name) == 0 ? " selected=\"\"" : "");
  html_print_text(out, name);
  fputs("</option>", out);
}

/* Print the spaces where an item's own vector can be a query. Returns how many there are. */
static size_t print_spaces(FILE *out, const struct status *s, const struct try_form *form)
{
  struct engine_space_info info;
  size_t n = 0;

  for (size_t i = 0; i < engine_n_spaces(s->engine); i++) {
    if (!engine_space_get(s->engine, i, &info) || !info.takes_like)
      continue;
    print_space(out, &info, form ? form->space : "");
    n++;
  }
  return n;
}

void try_form_print(FILE *out, const struct status *s, const struct try_form *form, const char *attributes)
{
  fprintf(out,
          "<form id=\"try\" action=\"try\"%s><label>Search items like <input name=\"key\" required=\"\" "
          "autocomplete=\"off\" placeholder=\"the key of an item\" value=\"",
          attributes);
  print_key(out, form);
  fputs("\"/></label> <label>in <select name=\"space\" required=\"\">", out);
  size_t n = print_spaces(out, s, form);
  fprintf(out,
          "</select></label> <label>best <input name=\"k\" type=\"number\" min=\"1\" max=\"%d\" value=\"%u\"/></label> "
          "<button>Search</button>%s</form>\n",
          TRIAL_K_MAX, form ? form->k : TRY_K_DEFAULT,
          n ? "" : "<p>No space takes queries by an item's key: those of a mol or bilinear model have other data.</p>");
}

/* ---- What came of it ---- */

static void print_problem(FILE *out, const char *message)
{
  fputs("<p class=\"problem\">", out);
  html_print_text(out, message);
  fputs("</p>\n", out);
}

static double number(const json_t *answer, const char *group, const char *name)
{
  return json_number_value(json_object_get(group ? json_object_get(answer, group) : answer, name));
}

static void print_receipt(FILE *out, const json_t *answer)
{
  const json_t *receipt = json_object_get(answer, "receipt"), *bound = json_object_get(receipt, "bound");
  bool is_exact = json_is_true(json_object_get(receipt, "exact"));

  fprintf(out, "<p id=\"receipt\">Receipt: %s.", is_exact ? "exact, these are the best of all" : "approximate");
  if (json_is_number(bound))
    fprintf(out, " No other item scores above %.6g.", json_number_value(bound));
  else if (is_exact)
    fputs(" There are no more items.", out);
  fputs("</p>\n", out);
}

static void print_effort(FILE *out, const json_t *answer)
{
  fputs("<p id=\"effort\">Waited ", out);
  html_print_number(out, number(answer, "times", "queued_us") / 1000);
  fputs(" ms, searched ", out);
  html_print_number(out, number(answer, "times", "searched_us") / 1000);
  fputs(" ms. Scored ", out);
  html_print_number(out, number(answer, "counts", "scored"));
  fputs(" of ", out);
  html_print_number(out, number(answer, "counts", "items"));
  fputs(" items in epoch ", out);
  html_print_number(out, number(answer, NULL, "epoch"));
  fputs(".</p>\n", out);
}

static void print_answer(FILE *out, const char *text, const struct attributes *attributes)
{
  json_t *answer = json_loads(text, 0, NULL);
  const json_t *error = json_object_get(answer, "error"), *message = json_object_get(error, "message");

  if (!answer) {
    print_problem(out, "The answer cannot be shown.");
  } else if (error) {
    print_problem(out, json_string_value(message) ? json_string_value(message) : "The query failed.");
  } else {
    try_hits_print(out, json_object_get(answer, "hits"), attributes);
    print_receipt(out, answer);
    print_effort(out, answer);
  }
  json_decref(answer);
}

static void print_page(FILE *out, const struct status *s, const struct try_form *form, const char *answer,
                       const char *message)
{
  fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
        "<link rel=\"stylesheet\" href=\"page.css\"/><title>Sluice: try a query</title></head>\n"
        "<body><main><h1>Try a query</h1>\n",
        out);
  try_form_print(out, s, form, "");
  fputs("<section id=\"tried\" aria-live=\"polite\">", out);
  if (message)
    print_problem(out, message);
  if (answer)
    print_answer(out, answer, &s->config->attributes);
  fputs("</section>\n<footer><a href=\"./\">The state of the daemon</a></footer></main></body></html>\n", out);
}

struct data_page try_page_make(const struct status *s, const struct try_form *form, const char *answer, unsigned code,
                               const char *message)
{
  struct data_page page = { .code = code };
  size_t n;
  FILE *out = open_memstream(&page.text, &n);

  if (!out)
    return page;
  print_page(out, s, form, answer, message);
  if (fclose(out) == 0)
    return page;
  free(page.text);
  page.text = NULL;
  return page;
}
