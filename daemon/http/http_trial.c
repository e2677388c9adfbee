/* SPDX-License-Identifier: Apache-2.0 */
/* Check a request for /try, suspend its connection, and resume it with the page. */
#include "daemon/http/http_trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Browsers say whether a page of another site sends the request. Such a page could not read the answer, but it could
 * make the daemon search. */
static bool is_from_another_site(struct MHD_Connection *connection)
{
  const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");

  return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

static const char *argument(struct MHD_Connection *connection, const char *name)
{
  return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

static void suspend(struct http_trial *t, struct MHD_Connection *connection)
{
  t->phase = HTTP_TRIAL_WAITS;
  t->connection = connection;
  t->until_ns = clock_now_ns() + TRIAL_WAIT_S * CLOCK_NS_PER_S;
  MHD_suspend_connection(connection);
}

/* Begin a trial. Returns false if it has begun. */
static bool begin(struct http_trial *t, const struct status *s, struct MHD_Connection *connection,
                  const struct try_form *form, struct data_page *out)
{
  struct trial_query query = { span_of(form->key, form->n_key), span_of_str(form->space), form->k };
  char message[TRIAL_MESSAGE_BYTES] = "another query is being tried: try again in a moment";
  bool is_taken = t->phase == HTTP_TRIAL_IS_MADE; /* for a moment: the library asks for the page next */
  enum trial_begin begun = is_taken ? TRIAL_MUST_WAIT : trial_begin(s->trial, &query, message);

  if (begun == TRIAL_HAS_BEGUN) {
    t->form = *form;
    suspend(t, connection);
    return false;
  }
  *out = try_page_make(s, form, NULL, begun == TRIAL_IS_BAD ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_SERVICE_UNAVAILABLE,
                       message);
  return true;
}

bool http_trial_serve(struct http_trial *t, const struct status *s, struct MHD_Connection *connection, bool is_head,
                      struct data_page *out)
{
  struct try_form form;

  if (is_head || (!argument(connection, "key") && !argument(connection, "space"))) {
    *out = try_page_make(s, NULL, NULL, MHD_HTTP_OK, NULL);
    return true;
  }
  const char *mistake =
      try_form_read(argument(connection, "key"), argument(connection, "space"), argument(connection, "k"), &form);
  if (mistake)
    *out = try_page_make(s, &form, NULL, MHD_HTTP_BAD_REQUEST, mistake);
  else if (is_from_another_site(connection))
    *out = try_page_make(s, &form, NULL, MHD_HTTP_FORBIDDEN, "a page of another site asks: press the button here");
  else
    return begin(t, s, connection, &form, out);
  return true;
}

bool http_trial_take(struct http_trial *t, const struct MHD_Connection *connection, struct data_page *out)
{
  if (t->phase != HTTP_TRIAL_IS_MADE || t->connection != connection)
    return false;
  t->phase = HTTP_TRIAL_NONE;
  *out = t->page;
  return true;
}

static void resume(struct http_trial *t, struct data_page page)
{
  t->page = page;
  t->phase = HTTP_TRIAL_IS_MADE;
  MHD_resume_connection(t->connection);
}

static void give_up(struct http_trial *t, const struct status *s)
{
  bool has_begun = trial_give_up(s->trial);

  resume(t, try_page_make(s, &t->form, NULL, MHD_HTTP_GATEWAY_TIMEOUT,
                          has_begun ? "The search takes too long: no answer in 5 s."
                                    : "No worker was free for 5 s: the queries from Kafka go first."));
}
_Static_assert(TRIAL_WAIT_S == 5, "the messages say so");

void http_trial_step(struct http_trial *t, const struct status *s)
{
  char *answer;

  if (t->phase != HTTP_TRIAL_WAITS)
    return;
  if (trial_take(s->trial, &answer)) {
    resume(t, try_page_make(s, &t->form, answer, MHD_HTTP_OK, answer ? NULL : "no memory for the answer"));
    free(answer);
  } else if (clock_now_ns() >= t->until_ns) {
    give_up(t, s);
  }
}

void http_trial_end(struct http_trial *t, const struct status *s)
{
  if (t->phase == HTTP_TRIAL_WAITS)
    give_up(t, s);
}
