/* SPDX-License-Identifier: Apache-2.0 */
/* Checking a URL by libcurl's own parser: what it takes here, a request takes too. */
#include "daemon/config/config_url.h"

#include <curl/curl.h>

#include "base/log.h"
#include "base/mem.h"

static bool has_part(CURLU *url, CURLUPart part)
{
  char *text = NULL;
  bool has_it = curl_url_get(url, part, &text, 0) == CURLUE_OK;

  curl_free(text);
  return has_it;
}

static bool is_part(CURLU *url, CURLUPart part, const char *expected)
{
  char *text = NULL;
  bool is_it = curl_url_get(url, part, &text, 0) == CURLUE_OK && strcmp(text, expected) == 0;

  curl_free(text);
  return is_it;
}

/* Return what is wrong with a parsed URL; NULL: nothing. */
static const char *find_fault(CURLU *url)
{
  if (!is_part(url, CURLUPART_SCHEME, "http") && !is_part(url, CURLUPART_SCHEME, "https"))
    return "its scheme is neither http nor https";
  if (has_part(url, CURLUPART_USER) || has_part(url, CURLUPART_PASSWORD))
    return "it has a user name or a password";
  if (has_part(url, CURLUPART_QUERY) || has_part(url, CURLUPART_FRAGMENT))
    return "it has a query or a fragment";
  return NULL;
}

err_t config_url_verify(struct span text)
{
  AUTO(mem_free) char *copy = NULL;
  const char *fault = "it is no URL";

  TRY(mem_copy(text, &copy));
  CURLU *url = curl_url();
  if (url && curl_url_set(url, CURLUPART_URL, copy, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK)
    fault = find_fault(url);
  curl_url_cleanup(url);
  if (fault)
    FAIL(ERR_CONFIG, "expects a URL such as https://host.example:8081, not %s: %s", log_quote(text), fault);
  return ERR_OK;
}

bool config_url_has_path(const char *text)
{
  CURLU *url = curl_url();
  bool has_path = url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK && !is_part(url, CURLUPART_PATH, "/");

  curl_url_cleanup(url);
  return has_path;
}
