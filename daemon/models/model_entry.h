/* SPDX-License-Identifier: Apache-2.0 */
/* A generation of a space as this daemon has it: how far it is, and what is wrong with it. */
#ifndef DAEMON_MODELS_MODEL_ENTRY_H
#define DAEMON_MODELS_MODEL_ENTRY_H

#include "base/model_change.h"
#include "store/store_walk.h"

enum { MODEL_PROBLEM_BYTES = 512 };

enum model_phase {
  MODEL_WAITING,  /* to be loaded; before that, its file may have to be fetched */
  MODEL_FETCHING, /* its file comes from the topic of files */
  MODEL_LOADING,  /* its file is being read */
  MODEL_FAILED,   /* it cannot be used: see the problem */
  MODEL_FILLING,  /* it gets the parts that the store has, and then perhaps its index */
  MODEL_READY,    /* it has all parts that there are */
  MODEL_KEPT,     /* it is retired, and its parts stay: a generation that derives from it uses them */
  MODEL_REMOVING, /* it is retired: its parts are being deleted from the store */
  MODEL_REMOVED,  /* they are deleted */
};

/* Return the phase as a word: "filling". */
const char *model_phase_word(enum model_phase phase);

/* For the index of a generation in the engine (model_index.h). */
struct index_watch {
  bool is_due;
  uint64_t n_items; /* at the newest look */
  int64_t look_due_ns;
  int64_t poured_ns; /* when parts last poured in, or the first look; 0: there was none */
};

/* A generation of a configured space. */
struct model_entry {
  size_t space;                  /* index of config->spaces */
  char name[SPACE_NAME_MAX + 1]; /* canonical: books, books@2 */
  uint32_t generation;
  uint32_t root;                      /* the generation whose parts it uses: itself, unless it derives from another */
  char part_name[SPACE_NAME_MAX + 1]; /* of these parts */
  bool lacks_root;                    /* the root is not known yet: no record is of this generation */
  enum model_phase phase;
  bool is_in_engine;
  struct index_watch index;
  bool names_another;                  /* the problem is that the control topic says something else about it */
  bool is_clean;                       /* the store has none of its parts: a process before this one has deleted them */
  bool may_lack_parts;                 /* it was retired when the daemon started, and the engine was opened with it */
  char digest[MODEL_DIGEST_CHARS + 1]; /* of the model that is loaded, or should be; "": of the configuration */
  char *path;                          /* NULL: of the configuration */
  bool is_in_topic;                    /* its file comes through the topic of files, and has `path` then */
  uint64_t n_bytes;                    /* of that file */
  uint64_t n_fetched;                  /* bytes of it that were found in the topic */
  bool is_fetched;                     /* it is there, with the right digest */
  uint64_t n_fetch_failures;           /* since it was last there; the problem says why */
  uint64_t read_in_vain;               /* see struct model_fetch */
  int64_t fetch_due_ns;                /* no attempt to fetch it before this */
  struct store_walk walk;
  uint64_t n_walked;                 /* items that the walk has seen */
  uint64_t n_filled;                 /* parts that it has given to the engine, or deleted from the store */
  uint64_t n_unusable;               /* parts that the store has and the model cannot use */
  uint64_t n_refused;                /* records that were refused because of its part, since the start */
  int64_t file_time;                 /* of the file that failed; when it changes, it is loaded again */
  int64_t look_due_ns;               /* no look at that file before this */
  char problem[MODEL_PROBLEM_BYTES]; /* ""; else why it failed, or the first unusable part */
  char refused[MODEL_PROBLEM_BYTES]; /* the newest of the refused records, and why; "": there is none */
};

#endif
