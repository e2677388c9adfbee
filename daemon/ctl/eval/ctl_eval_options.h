/* SPDX-License-Identifier: Apache-2.0 */
/* The options of sluicectl eval, and how to parse them. */
#ifndef DAEMON_CTL_CTL_EVAL_OPTIONS_H
#define DAEMON_CTL_CTL_EVAL_OPTIONS_H

#include "daemon/ctl/text/ctl_boosts.h"
#include "daemon/ctl/text/ctl_min_score.h"
#include "daemon/ctl/text/ctl_mmr.h"
#include "engine/engine.h"

struct ctl_eval_options {
  const char *model_path;
  const char *items_path;
  const char *queries_path;
  const char *output_path;
  const char *attributes_path;  /* NULL: items have no attributes */
  struct attribute *attributes; /* [n_attributes] those of --attribute, with names of their own */
  size_t n_attributes;
  const char *filter;     /* NULL: none */
  const char *parameters; /* JSON; NULL: none */
  struct max_per max_per; /* n 0: none */
  struct mmr mmr;         /* diversity 0: none */
  struct ctl_min_score min_score;
  const char *not_before; /* the attribute before whose time an item is embargoed; NULL: none */
  const char *expires;    /* the attribute from whose time on an item is expired; NULL: none */
  int64_t at_unix_ms;     /* the time of all searches, for the two */
  bool has_at;            /* it is given */
  const char **methods;   /* [n_methods] as given */
  size_t n_methods;
  uint64_t k;
  uint64_t batch; /* queries per batch */
  uint64_t n_threads;
  uint64_t threads_per_search;
  enum isa isa;
  enum engine_backend backend;
  bool prints_json;
  bool has_targets;
  struct ctl_boosts boosts; /* now_unix_ms is known even if it is not given */
};

/* Parse the command line; argv[0] is the command's name. Returns ERR_USAGE with what is wrong; ERR_MEMORY. */
err_t ctl_eval_options_parse(int argc, char **argv, struct ctl_eval_options *out);
void ctl_eval_options_fini(struct ctl_eval_options *o);

#endif
