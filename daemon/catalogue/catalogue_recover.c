/* SPDX-License-Identifier: Apache-2.0 */
/* What the catalogue thread does after an error that it can wait out: one function for each kind of error. All of them
 * end by connecting again. */
#include "daemon/catalogue/catalogue_state.h"

#include <stdio.h>

#include "base/log.h"

bool catalogue_is_recoverable(err_code_t err)
{
  return err == ERR_DISCONTINUITY || err_class(err) == ERR_CLASS_RETRY;
}

static err_t handle_other_topic(struct catalogue *c)
{
  TRY(catalogue_handle_discontinuity(c));
  return catalogue_connect(c);
}

/* Resume all partitions where the store stands, except the damaged ones. */
static err_t skip_damage(struct catalogue *c)
{
  char problem[REPORT_TEXT_BYTES];

  snprintf(problem, sizeof problem, "%s", err_message());
  TRY(catalogue_connect(c));
  catalogue_set_phase(c, CATALOGUE_DAMAGED, problem);
  return ERR_OK;
}

/* The disk filled up outside of a batch, for instance when a rebuild began or ended: connect again and retry. */
static err_t wait_for_disk(struct catalogue *c)
{
  if (catalogue_phase(c) != CATALOGUE_DISK_FULL)
    log_error("store_disk_full", "reason=%s", log_failure());
  catalogue_set_phase(c, CATALOGUE_DISK_FULL, err_message());
  TRY(catalogue_wait(c, 2 * CATALOGUE_RETRY_MS));
  return catalogue_connect(c);
}

/* Reading is not allowed, although describing the topic is: that is noticed only after connecting. */
static err_t wait_for_permission(struct catalogue *c)
{
  log_warn("catalogue_waiting", "reason=%s", log_failure());
  catalogue_set_phase(c, CATALOGUE_DENIED, err_message());
  TRY(catalogue_wait_to_reopen(c, CATALOGUE_REFUSED_MS));
  followed_topic_leave(&c->topic);
  return catalogue_connect(c);
}

static err_t reconnect(struct catalogue *c)
{
  log_warn("catalogue_waiting", "reason=%s", log_failure());
  catalogue_set_phase(c, CATALOGUE_CONNECTING, err_message());
  followed_topic_leave(&c->topic);
  return catalogue_connect(c);
}

err_t catalogue_renew(struct catalogue *c)
{
  struct topic_reader *next;

  TRY(followed_topic_renew(&c->topic, &next));
  if (!next)
    return ERR_OK;
  catalogue_forget_batch(c);
  followed_topic_take_over(&c->topic, &next);
  return catalogue_connect(c);
}

err_t catalogue_recover(struct catalogue *c, err_code_t err)
{
  catalogue_forget_batch(c);
  if (err == ERR_DISCONTINUITY)
    return handle_other_topic(c);
  if (err == ERR_KAFKA_DAMAGED)
    return skip_damage(c);
  if (err == ERR_STORE_FULL)
    return wait_for_disk(c);
  if (err == ERR_KAFKA_DENIED)
    return wait_for_permission(c);
  return reconnect(c);
}
