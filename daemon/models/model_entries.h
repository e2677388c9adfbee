/* SPDX-License-Identifier: Apache-2.0 */
/* The generations of the configured spaces as this daemon has them, in order of space and generation.
 *
 * Thread: the owner's.
 */
#ifndef DAEMON_MODELS_MODEL_ENTRIES_H
#define DAEMON_MODELS_MODEL_ENTRIES_H

#include "daemon/models/model_entry.h"

/* All zeros: there are none. An entry stays where it is until it is dropped. */
struct model_entries {
  struct model_entry **v; /* [n] */
  size_t n;
  size_t capacity;
};

void model_entries_fini(struct model_entries *e);

/* Return an entry, or NULL. */
struct model_entry *model_entries_find(const struct model_entries *e, size_t space, uint32_t generation);

/* Return the first entry in a phase, or NULL. */
struct model_entry *model_entries_find_phase(const struct model_entries *e, enum model_phase phase);

/* Add an entry that is not there yet; it waits.
 *
 * name  of the space
 */
err_t model_entries_add(struct model_entries *e, size_t space, struct span name, uint32_t generation,
                        struct model_entry **out);

void model_entries_drop(struct model_entries *e, size_t i);

/* The entry uses the parts of this generation of its space. */
void model_entry_set_root(struct model_entry *entry, uint32_t root);

/* Enter a phase, and log it. */
void model_entry_enter(struct model_entry *entry, enum model_phase phase);

/* The calling thread's newest failure is what is wrong with the entry: log it, and enter MODEL_FAILED. */
void model_entry_fail(struct model_entry *entry);

/* The control topic names a model with this digest for a loaded entry. If it is another one, or has another root, that
 * is its problem, and it is logged. Once it is the loaded one again, the problem is gone. */
void model_entry_note_asked(struct model_entry *entry, const char *digest, bool has_root);

/* The store has a part that the model cannot use; the calling thread's newest failure says why. Count it. The first one
 * is the entry's problem.
 *
 * key  of the item */
void model_entry_note_unusable(struct model_entry *entry, struct span key);

/* A record was refused because of a part that the model cannot use; the calling thread's newest failure says why. */
void model_entry_note_refused(struct model_entry *entry, struct span key);

/* Forget the parts that could not be used: they are counted anew. */
void model_entry_forget_unusable(struct model_entry *entry);

/* Forget what was done and what was wrong, for another attempt. */
void model_entry_reset(struct model_entry *entry);

#endif
