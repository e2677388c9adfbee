/* SPDX-License-Identifier: Apache-2.0 */
/* GET requests with libcurl, never through a proxy. */
#include "daemon/ctl/http_get.h"

#include <curl/curl.h>
#include <stdio.h>

#include "base/mem.h"

enum { TIMEOUT_MS = 5000, BASE_BYTES = 128, URL_BYTES = 1024, BODY_BYTES_MAX = 64 << 20 };

struct http_get {
  CURL *curl;
  char base[BASE_BYTES];
  uint8_t *body;
  size_t n_body;
  size_t body_capacity;
};

static size_t on_body(char *bytes, size_t size, size_t n, void *context)
{
  struct http_get *h = context;
  size_t more = size * n;

  if (more > BODY_BYTES_MAX - h->n_body || mem_grow(h->n_body + more + 1, 1, &h->body_capacity, &h->body) != ERR_OK)
    return 0; /* curl ends the transfer with an error */
  memcpy(h->body + h->n_body, bytes, more);
  h->n_body += more;
  h->body[h->n_body] = '\0';
  return more;
}

static bool set_options(struct http_get *h)
{
  CURL *curl = h->curl;

  return curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_WRITEDATA, h) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_TCP_NODELAY, 1L) == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
         curl_easy_setopt(curl, CURLOPT_NOPROXY, "*") == CURLE_OK; /* the daemon is on this machine */
}

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

  TRY(mem_array(1, sizeof *h, &h));
  TRY(mem_grow(1, 1, &h->body_capacity, &h->body));
  make_base(listen, h->base, sizeof h->base);
  h->curl = curl_easy_init();
  if (!h->curl || !set_options(h))
    FAIL(ERR_SYSTEM, "libcurl cannot be initialised");
  *out = h;
  h = NULL;
  return ERR_OK;
}

void http_get_close(struct http_get **h)
{
  if (!*h)
    return;
  if ((*h)->curl)
    curl_easy_cleanup((*h)->curl);
  mem_free(&(*h)->body);
  mem_free(h);
}

const char *http_get_base(const struct http_get *h)
{
  return h->base;
}

err_t http_get_page(struct http_get *h, const char *path, long *code, struct span *body)
{
  char url[URL_BYTES];

  snprintf(url, sizeof url, "%s%s", h->base, path);
  h->n_body = 0;
  h->body[0] = '\0';
  curl_easy_setopt(h->curl, CURLOPT_URL, url);
  curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
  CURLcode result = curl_easy_perform(h->curl);
  if (result == CURLE_COULDNT_CONNECT)
    FAIL(ERR_SYSTEM, "nothing answers at %s: is sluiced running, with the same http.listen?", h->base);
  if (result != CURLE_OK)
    FAIL(ERR_SYSTEM, "%s does not answer: %s", url, curl_easy_strerror(result));
  curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, code);
  *body = span_of(h->body, h->n_body);
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
