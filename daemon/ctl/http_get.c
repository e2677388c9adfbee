/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the daemon, and what they say. */
#include "daemon/ctl/http_get.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ingest/http/http_client.h"

enum { TIMEOUT_MS = 5000, BASE_BYTES = 128, URL_BYTES = 1024, BODY_MIB_MAX = 64 };

struct http_get {
  struct http_client *client;
  char base[BASE_BYTES];
};

static void make_base(const char *listen, char *out, size_t size)
{
  static const char anywhere_v4[] = "0.0.0.0:";
  static const char anywhere_v6[] = "[::]:";

  if (strncmp(listen, anywhere_v4, sizeof anywhere_v4 - 1) == 0)
    snprintf(out, size, "http://127.0.0.1:%s", listen + sizeof anywhere_v4 - 1);
  else if (strncmp(listen, anywhere_v6, sizeof anywhere_v6 - 1) == 0)
    snprintf(out, size, "http://[::1]:%s", listen + sizeof anywhere_v6 - 1);
  else
    snprintf(out, size, "http://%s", listen);
}

err_t http_get_open(const char *listen, struct http_get **out)
{
  AUTO(http_get_close) struct http_get *h = NULL;
  const struct http_options options = { .timeout_ms = TIMEOUT_MS, .body_bytes = (size_t)BODY_MIB_MAX << 20 };

  TRY(mem_array(1, sizeof *h, &h));
  make_base(listen, h->base, sizeof h->base);
  TRY(http_client_open(&options, &h->client));
  *out = h;
  h = NULL;
  return ERR_OK;
}

void http_get_close(struct http_get **h)
{
  if (!*h)
    return;
  http_client_close(&(*h)->client);
  mem_free(h);
}

const char *http_get_base(const struct http_get *h)
{
  return h->base;
}

err_t http_get_page(struct http_get *h, const char *path, long *code, struct span *body)
{
  struct http_answer answer;
  char url[URL_BYTES];

  snprintf(url, sizeof url, "%s%s", h->base, path);
  http_client_ask(h->client, url, NULL, NULL, &answer);
  if (answer.is_refused)
    FAIL(ERR_SYSTEM, "nothing answers at %s: is sluiced running, with the same http.listen?", h->base);
  if (answer.status == 0)
    FAIL(ERR_SYSTEM, "%s does not answer: %s", url, answer.trouble);
  if (answer.is_cut)
    FAIL(ERR_SYSTEM, "%s answers with more than %d MiB", url, BODY_MIB_MAX);
  *code = answer.status;
  *body = span_of(answer.body, answer.n_body);
  return ERR_OK;
}

err_t http_get_status(struct http_get *h, json_t **out)
{
  struct span body;
  long code;
  json_error_t error;

  TRY(http_get_page(h, "/status", &code, &body));
  if (code != HTTP_GET_OK)
    FAIL(ERR_SYSTEM, "%s/status answered with HTTP status %ld", h->base, code);
  json_t *status = json_loadb((const char *)body.p, body.n, 0, &error);
  if (!json_is_object(status)) {
    json_decref(status);
    FAIL(ERR_SYSTEM, "%s/status did not answer with a status: %s", h->base,
         *error.text ? error.text : "it is no object");
  }
  *out = status;
  return ERR_OK;
}

err_t http_get_readyz(struct http_get *h, bool *is_ready, struct span *line)
{
  struct span body;
  long code;

  TRY(http_get_page(h, "/readyz", &code, &body));
  *is_ready = code == HTTP_GET_OK;
  *line = span_of(body.p, strcspn((const char *)body.p, "\n"));
  return ERR_OK;
}
