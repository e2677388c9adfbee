/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line of sluicectl model says, and what the verbs do with it. Thread: one. */
#ifndef DAEMON_CTL_CTL_MODEL_REQUEST_H
#define DAEMON_CTL_CTL_MODEL_REQUEST_H

#include "daemon/ctl/model/ctl_model_daemons.h"
#include "daemon/models/model_state.h"

/* What a command line says. */
struct ctl_model_request {
  struct ctl_context *ctx;
  struct ctl_model_daemons daemons;
  struct model_state state; /* what the control topic says */
  const char *space;
  uint64_t generation; /* 0: not given */
  const char *file;
  const char *path;
  bool is_derived;
  uint64_t derived_from; /* 0: the current generation */
  bool is_kept;          /* the retired generation's parts stay */
  double min_coverage;
  bool uploads;
  double share;
  bool has_share;
  bool is_forced;
  bool prints_json;
  uint64_t timeout_s;
  bool has_timeout;
  uint64_t largest;                     /* the largest generation that a daemon knows */
  bool is_known, is_answering;          /* some daemon knows the generation; all of them answer with it */
  const char *digest;                   /* of the file that is added; NULL: whatever is loaded */
  char problem[CTL_MODEL_REASON_BYTES]; /* why nothing is compared, as the last daemon says; "" */
  int64_t next;                         /* the offset after the record that was written; 0: none was */
};

/* Read the options; optind is at the first argument then. */
err_t ctl_model_request_parse(struct ctl_model_request *r, int argc, char **argv);

/* Before anything is written: returns ERR_USAGE if the configuration does not have the space, and ERR_SYSTEM if a
 * daemon that was named does not answer. */
err_t ctl_model_request_verify(struct ctl_model_request *r);
struct span ctl_model_request_space(const struct ctl_model_request *r);

/* The generation that should answer, by the control topic. */
uint32_t ctl_model_request_wanted(const struct ctl_model_request *r);

/* Find out what the daemons know about the space. They know more than the control topic if that was created anew. */
err_t ctl_model_request_ask(struct ctl_model_request *r);

/* Write a record for the space, and note its offset. */
err_t ctl_model_request_write(struct ctl_model_request *r, enum model_change_kind kind, struct model_change change);

/* Wait until all daemons have read that record and have got there. */
err_t ctl_model_request_await(struct ctl_model_request *r, ctl_model_goal goal, int64_t timeout_s);

/* A ctl_model_goal: is the generation loaded and filled? An error if it is another model than the file that was added.
 * `context` is the request. */
err_code_t ctl_model_request_is_loaded(void *context, const json_t *row, bool *is_there,
                                       char reason[CTL_MODEL_REASON_BYTES]);

#endif
