/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted list of entries, and what is logged when one changes. */
#include "daemon/models/model_entries.h"

#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"

const char *model_phase_word(enum model_phase phase)
{
  static const char *const words[] = {
    [MODEL_WAITING] = "waiting", [MODEL_FETCHING] = "fetching", [MODEL_LOADING] = "loading",
    [MODEL_FAILED] = "failed",   [MODEL_FILLING] = "filling",   [MODEL_READY] = "ready",
    [MODEL_KEPT] = "kept",       [MODEL_REMOVING] = "removing", [MODEL_REMOVED] = "removed",
  };

  return words[phase];
}

void model_entries_fini(struct model_entries *e)
{
  while (e->n > 0)
    model_entries_drop(e, e->n - 1);
  mem_free(&e->v);
}

/* Return the index of the first entry that does not come before this one. */
static size_t place(const struct model_entries *e, size_t space, uint32_t generation)
{
  size_t from = 0, n = e->n;

  while (n > 0) {
    size_t half = n / 2;
    const struct model_entry *at = e->v[from + half];
    if (at->space < space || (at->space == space && at->generation < generation)) {
      from += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return from;
}

struct model_entry *model_entries_find(const struct model_entries *e, size_t space, uint32_t generation)
{
  size_t i = place(e, space, generation);

  return i < e->n && e->v[i]->space == space && e->v[i]->generation == generation ? e->v[i] : NULL;
}

struct model_entry *model_entries_find_phase(const struct model_entries *e, enum model_phase phase)
{
  for (size_t i = 0; i < e->n; i++) {
    if (e->v[i]->phase == phase)
      return e->v[i];
  }
  return NULL;
}

err_t model_entries_add(struct model_entries *e, size_t space, struct span name, uint32_t generation,
                        struct model_entry **out)
{
  size_t i = place(e, space, generation);
  struct model_entry *entry;

  TRY(mem_grow(e->n + 1, sizeof *e->v, &e->capacity, &e->v));
  TRY(mem_array(1, sizeof *entry, &entry));
  entry->space = space;
  entry->generation = generation;
  space_name_print(&(struct space_name){ name, generation }, entry->name); /* the record's key had room for it */
  model_entry_set_root(entry, generation);
  memmove(e->v + i + 1, e->v + i, (e->n - i) * sizeof *e->v);
  e->v[i] = entry;
  e->n++;
  *out = entry;
  return ERR_OK;
}

void model_entries_drop(struct model_entries *e, size_t i)
{
  mem_free(&e->v[i]->path);
  mem_free(&e->v[i]);
  e->n--;
  memmove(e->v + i, e->v + i + 1, (e->n - i) * sizeof *e->v);
}

void model_entry_set_root(struct model_entry *entry, uint32_t root)
{
  struct space_name name;

  space_name_parse(span_of_str(entry->name), &name);
  name.generation = entry->root = root;
  space_name_print(&name, entry->part_name); /* an earlier generation has a name that is no longer */
}

void model_entry_enter(struct model_entry *entry, enum model_phase phase)
{
  entry->phase = phase;
  if (phase != MODEL_WAITING && phase != MODEL_FAILED)
    log_info("model", "generation=%s phase=%s", entry->name, model_phase_word(phase));
}

void model_entry_fail(struct model_entry *entry)
{
  snprintf(entry->problem, sizeof entry->problem, "%s", err_message());
  log_error("model_failed", "generation=%s reason=%s note=\"the former generations answer\"", entry->name,
            log_failure());
  model_entry_enter(entry, MODEL_FAILED);
}

void model_entry_note_asked(struct model_entry *entry, const char *digest, bool has_root)
{
  bool is_another = strcmp(entry->digest, digest) != 0 || !has_root;

  if (is_another && !*entry->problem) {
    snprintf(entry->problem, sizeof entry->problem,
             "the control topic names another model for it now, or other parts: a generation keeps its model. Add a "
             "new generation");
    log_error("model_changed", "generation=%s note=\"%s\"", entry->name, entry->problem);
    entry->names_another = true;
  }
  if (!is_another && entry->names_another) {
    *entry->problem = '\0';
    entry->names_another = false;
  }
}

void model_entry_note_unusable(struct model_entry *entry, struct span key)
{
  if (entry->n_unusable++ > 0)
    return;
  snprintf(entry->problem, sizeof entry->problem, "item %s: %s", log_quote(key), err_message());
  entry->names_another = false;
}

void model_entry_note_refused(struct model_entry *entry, struct span key)
{
  entry->n_refused++;
  snprintf(entry->refused, sizeof entry->refused, "key %s: %s", log_quote(key), err_message());
}

void model_entry_forget_unusable(struct model_entry *entry)
{
  if (entry->n_unusable > 0 && !entry->names_another)
    *entry->problem = '\0';
  entry->n_unusable = 0;
}

void model_entry_reset(struct model_entry *entry)
{
  entry->walk = (struct store_walk){ 0 };
  entry->is_fetched = false;
  entry->n_fetched = entry->n_fetch_failures = 0;
  entry->read_in_vain = 0;
  entry->fetch_due_ns = 0;
  entry->n_walked = entry->n_filled = entry->n_unusable = 0;
  *entry->problem = '\0';
  entry->names_another = false;
}
