/* SPDX-License-Identifier: Apache-2.0 */
/* What daemons say about a generation, by their /status, and waiting for it. Thread: one. */
#ifndef DAEMON_CTL_CTL_MODEL_DAEMONS_H
#define DAEMON_CTL_CTL_MODEL_DAEMONS_H

#include "daemon/ctl/ctl_context.h"

enum { CTL_MODEL_DAEMONS_MAX = 64 };

/* The daemon of the configuration, and others. */
struct ctl_model_daemons {
  struct http_get *http[CTL_MODEL_DAEMONS_MAX]; /* [n] */
  size_t n;
};

/* Add a daemon by the address:port of its HTTP server, or by its URL http://address:port. */
err_t ctl_model_daemons_add(struct ctl_model_daemons *d, const char *address);
void ctl_model_daemons_fini(struct ctl_model_daemons *d);

/* Ask one daemon for its generations: /status's `models`. The caller releases it with ctl_json_close(). Returns
 * ERR_SYSTEM if it does not answer, or has no control topic. */
err_t ctl_model_daemons_ask(struct http_get *http, json_t **out);

/* Verify that all daemons answer, except the last, which nobody has named: it is that of the configuration, and may be
 * started later. Errors as ctl_model_daemons_ask(). */
err_t ctl_model_daemons_verify_named(struct ctl_model_daemons *d);

/* Find a generation in `models`; NULL: the daemon does not know it. Borrowed. */
const json_t *ctl_model_daemons_find(const json_t *models, const char *space, uint32_t generation);

/* Ask each daemon once, and call `visit` for each generation of the space that it knows. `daemon` is its address.
 * Daemons that do not answer are left out. An error of visit ends it. */
typedef err_code_t (*ctl_model_visit)(void *context, const char *daemon, const json_t *row);
err_t ctl_model_daemons_visit(struct ctl_model_daemons *d, const char *space, ctl_model_visit visit, void *context);

/* What one waits for: has this daemon got there? `row` is NULL if it does not know the generation. An error ends the
 * wait: what is waited for will never be. While it returns false, `reason` says what is missing. */
enum { CTL_MODEL_REASON_BYTES = 1024 };
typedef err_code_t (*ctl_model_goal)(void *context, const json_t *row, bool *is_there,
                                     char reason[CTL_MODEL_REASON_BYTES]);

/* Wait until all daemons have read the control topic up to `next`, and have got there. Each must answer when it is
 * first asked; later it may be away for a while. Returns ERR_SYSTEM with the daemon and what is missing after
 * timeout_ms; 0: ask each once. Says on standard error what is missing, once a second if it changes. */
err_t ctl_model_daemons_await(struct ctl_model_daemons *d, const char *space, uint32_t generation, ctl_model_goal goal,
                              void *context, int64_t next, int64_t timeout_ms);

#endif
