/* SPDX-License-Identifier: Apache-2.0 */
/* The newest evaluated filters, shared by all searches: a filter is not evaluated again until something that it sees
 * has changed. Then the words of the former version are where the new ones begin.
 *
 * An entry is the words of one filter, for one space and one version: a number that rises with each change of what the
 * filter sees. Nobody replaces an entry that a search holds. A new version takes the place of an older one of its
 * filter, otherwise that of the least recently used entry.
 *
 * Thread: any. The lock is held to find an entry, never to evaluate one. So nobody waits for a filter that another
 * search evaluates: both evaluate it.
 */
#ifndef ENGINE_FILTER_CACHE_H
#define ENGINE_FILTER_CACHE_H

#include "base/span.h"
#include "engine/admission/filter_words.h"

enum {
  FILTER_CACHE_ENTRIES = 64,
  FILTER_CACHE_BYTES = 256 << 20,     /* of the words of all entries */
  FILTER_CACHE_TREE_BYTES = 256 << 10 /* a filter with a longer key is not kept */
};

struct filter_cache;
struct filter_entry;

/* What an entry is found by. */
struct filter_key {
  struct span tree; /* query.tree_key */
  size_t space;     /* its number */
  uint64_t version; /* filter_sight.version */
};

/* The bytes of all entries of `n_words` words each: as many as fit into `max_bytes`, without their keys. */
size_t filter_cache_bytes(size_t n_words, size_t max_bytes);

/* Reserve address space for these entries. Memory is used as entries are. Returns ERR_MEMORY. */
err_t filter_cache_open(size_t n_words, size_t max_bytes, struct filter_cache **out);

/* Nobody may hold an entry. */
void filter_cache_close(struct filter_cache **c);

/* Find an entry and hold it. NULL: there is none. Allocates: no. */
struct filter_entry *filter_cache_acquire(struct filter_cache *c, const struct filter_key *key);

/* Begin a new entry, and hold it. The caller writes its words, then commits it; without that it is dropped when it is
 * released.
 *
 * since  a former version from this one on is useful: the entry begins with its words
 * out    NULL: there is no room, the key is too long, or there is a newer version
 *
 * Returns ERR_MEMORY. Allocates: if the key is longer than those that the entry had before.
 */
err_t filter_cache_begin(struct filter_cache *c, const struct filter_key *key, uint64_t since,
                         struct filter_entry **out);

/* Has a filter been asked for in this version, since the last filters that came? Notes that it is asked for now. Only a
 * guess of what will come again: it may be wrong, if rarely. False for a filter that cannot be kept.
 *
 * newest_version  of which there are words of the filter; 0: there are none. They may be gone before they are used
 */
bool filter_cache_ask(struct filter_cache *c, const struct filter_key *key, uint64_t *newest_version);

/* The version whose words a new entry has; 0: none. filter_entry_words() describes them. */
uint64_t filter_entry_former(const struct filter_entry *entry);

/* From now on the entry can be found. w: filter_entry_words(), as they are now. */
void filter_cache_commit(struct filter_cache *c, struct filter_entry *entry, const struct filter_words *w);

/* Stop holding an entry. Its words may change from now on. */
void filter_cache_release(struct filter_cache *c, struct filter_entry *entry);

/* The words of an entry. They are written only between filter_cache_begin() and filter_cache_commit(). */
struct filter_words filter_entry_words(const struct filter_entry *entry);

/* A number above 0 that no other words of this cache have, nor had. Copies of words can be found by it. */
uint64_t filter_entry_id(const struct filter_entry *entry);

/* Note how words were made that filter_cache_acquire() has not found. */
void filter_cache_note(struct filter_cache *c, bool was_patched);

struct filter_cache_stats {
  uint64_t n_hits;                 /* filter_cache_acquire() has found an entry */
  uint64_t n_patched, n_evaluated; /* noted */
};
void filter_cache_get_stats(struct filter_cache *c, struct filter_cache_stats *out);

#endif
