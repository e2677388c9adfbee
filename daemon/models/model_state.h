/* SPDX-License-Identifier: Apache-2.0 */
/* What the control topic asks for: the models of each space's generations, and which one was current when.
 *
 * It is the newest change of each key, and nothing else: so it is the same whichever older records compaction has
 * removed, and in whatever order the keys come. Whether this daemon can do what is asked is another matter.
 *
 * Thread: the owner's.
 */
#ifndef DAEMON_MODELS_MODEL_STATE_H
#define DAEMON_MODELS_MODEL_STATE_H

#include "base/err.h"
#include "base/model_change.h"

struct model_generation {
  uint32_t number;
  bool is_retired;                     /* then there is neither path nor digest */
  char digest[MODEL_DIGEST_CHARS + 1]; /* "": the model is the one of the configuration */
  char *path;                          /* NULL: the same, or it is in the topic of files */
  bool is_in_topic;                    /* the file is in the topic of files */
  uint64_t n_bytes;                    /* of a file in that topic */
  uint32_t derives_from;               /* the generation whose parts it uses; 0: it has parts of its own */
  double shadow;                       /* share of the queries that are compared in it; 0: none */
};

struct model_space {
  char *name;
  struct model_generation *generations; /* [n_generations], by rising number */
  size_t n_generations;
  size_t generations_capacity;
  struct model_switch switches[MODEL_SWITCHES_MAX]; /* [n_switches] */
  size_t n_switches;
};

/* All zeros: no record was read. */
struct model_state {
  struct model_space *spaces; /* [n], by name */
  size_t n;
  size_t capacity;
  uint64_t n_applied; /* changes, so that others see whether there were any */
};

void model_state_fini(struct model_state *s);

/* Take a change over. Returns ERR_MEMORY: then nothing has changed. */
err_t model_state_apply(struct model_state *s, const struct model_change *change);

/* Return what was said about a space, or NULL if nothing was. Valid until the next change. */
const struct model_space *model_state_find(const struct model_state *s, struct span space);

/* Return what was said about a generation, or NULL. `space` may be NULL. */
const struct model_generation *model_state_generation(const struct model_space *space, uint32_t number);

/* Return the record that says what is known of a generation that was added: the change that made it so. Its texts are
 * those of the generation. */
struct model_change model_state_record(const struct model_space *space, const struct model_generation *generation);

/* Was this generation retired? */
bool model_state_is_retired(const struct model_state *s, struct span space, uint32_t number);

/* Return the generation whose parts this one uses: its root. It is the generation itself, unless that was derived.
 * See model_state_lacks_root(). */
uint32_t model_state_root(const struct model_state *s, struct span space, uint32_t number);

/* Does this generation derive, perhaps through others, from one that no record is of? Then its root is not known yet:
 * the record that is missing may name another one. */
bool model_state_lacks_root(const struct model_space *space, uint32_t number);

/* Are the parts of this root used? Retired generations use none. One whose root is not known yet may use any. */
bool model_state_uses_parts(const struct model_state *s, struct span space, uint32_t root);

/* Return the generation that was current at a time, by the history of switches alone. Before the first switch, and in a
 * space without any, that is 1. */
uint32_t model_state_at(const struct model_state *s, struct span space, int64_t time_ms);

#endif
