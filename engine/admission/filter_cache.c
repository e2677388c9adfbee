/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the words of filters: finding, replacing and holding entries. */
#include "engine/admission/filter_cache.h"

#include <pthread.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

struct filter_entry {
  struct filter_words words;
  uint64_t former;   /* of a new entry: the version whose words it has; 0: none */
  uint64_t id;       /* a new one each time that the words are written */
  size_t n_holders;  /* searches that hold it */
  bool is_committed; /* the fields below are valid, and the entry can be found */
  uint64_t hash;
  struct filter_key key; /* its tree points to `tree` */
  uint8_t *tree;
  size_t tree_capacity;
  uint64_t last_use;
};

/* Filters that are remembered as asked for. */
enum { ASKED = 1024 };

struct filter_cache {
  pthread_mutex_t lock;         /* of all that follows, except words and keys of entries that are not committed */
  struct filter_entry *entries; /* [n_entries] */
  size_t n_entries;
  uint64_t *words; /* [n_entries * n_words] */
  size_t n_words;
  uint64_t n_uses;
  uint64_t n_ids;
  uint64_t asked[ASKED]; /* hashes of filters and versions, each at its place */
  struct filter_cache_stats stats;
};

enum { LINE_WORDS = MEM_ALIGN / sizeof(uint64_t) };

/* Entries do not share cache lines. */
static size_t pad_words(size_t n_words)
{
  return (n_words / LINE_WORDS + 1) * LINE_WORDS;
}

static size_t count_entries(size_t n_words, size_t max_bytes)
{
  size_t n = max_bytes / (pad_words(n_words) * sizeof(uint64_t));

  return n < FILTER_CACHE_ENTRIES ? n : FILTER_CACHE_ENTRIES;
}

size_t filter_cache_bytes(size_t n_words, size_t max_bytes)
{
  return count_entries(n_words, max_bytes) * pad_words(n_words) * sizeof(uint64_t);
}

err_t filter_cache_open(size_t n_words, size_t max_bytes, struct filter_cache **out)
{
  AUTO(filter_cache_close) struct filter_cache *c = NULL;

  TRY(mem_array(1, sizeof *c, &c));
  pthread_mutex_init(&c->lock, NULL);
  c->n_words = pad_words(n_words);
  c->n_entries = count_entries(n_words, max_bytes);
  TRY(mem_array(c->n_entries, sizeof *c->entries, &c->entries));
  TRY(mem_reserve(c->n_entries * c->n_words, sizeof *c->words, &c->words));
  for (size_t i = 0; i < c->n_entries; i++)
    c->entries[i].words.words = c->words + i * c->n_words;
  *out = c;
  c = NULL;
  return ERR_OK;
}

void filter_cache_close(struct filter_cache **c)
{
  if (!*c)
    return;
  for (size_t i = 0; (*c)->entries && i < (*c)->n_entries; i++)
    mem_free(&(*c)->entries[i].tree);
  mem_release(&(*c)->words, (*c)->n_entries * (*c)->n_words, sizeof *(*c)->words);
  mem_free(&(*c)->entries);
  pthread_mutex_destroy(&(*c)->lock);
  mem_free(c);
}

static uint64_t hash_of(const struct filter_key *key)
{
  return XXH3_64bits(key->tree.p, key->tree.n);
}

/* Does the entry have the words of the filter, in any version? */
static bool has_filter(const struct filter_entry *e, const struct filter_key *key, uint64_t hash)
{
  return e->is_committed && e->hash == hash && e->key.space == key->space && span_equal(e->key.tree, key->tree);
}

static struct filter_entry *find(struct filter_cache *c, const struct filter_key *key, uint64_t hash)
{
  for (size_t i = 0; i < c->n_entries; i++) {
    if (has_filter(&c->entries[i], key, hash) && c->entries[i].key.version == key->version)
      return &c->entries[i];
  }
  return NULL;
}

static void hold(struct filter_cache *c, struct filter_entry *e)
{
  e->n_holders++;
  e->last_use = ++c->n_uses;
}

struct filter_entry *filter_cache_acquire(struct filter_cache *c, const struct filter_key *key)
{
  uint64_t hash = hash_of(key);

  pthread_mutex_lock(&c->lock);
  struct filter_entry *e = find(c, key, hash);
  if (e) {
    hold(c, e);
    c->stats.n_hits++;
  }
  pthread_mutex_unlock(&c->lock);
  return e;
}

/* Find the newest version of the filter. NULL: there is none. */
static struct filter_entry *find_newest(struct filter_cache *c, const struct filter_key *key, uint64_t hash)
{
  struct filter_entry *newest = NULL;

  for (size_t i = 0; i < c->n_entries; i++) {
    struct filter_entry *e = &c->entries[i];
    if (has_filter(e, key, hash) && (!newest || e->key.version > newest->key.version))
      newest = e;
  }
  return newest;
}

bool filter_cache_ask(struct filter_cache *c, const struct filter_key *key, uint64_t *newest_version)
{
  *newest_version = 0;
  if (c->n_entries == 0 || key->tree.n > FILTER_CACHE_TREE_BYTES)
    return false;
  const uint64_t all[] = { hash_of(key), key->space, key->version };
  uint64_t hash = XXH3_64bits(all, sizeof all), *at = &c->asked[hash % ASKED];

  pthread_mutex_lock(&c->lock);
  const struct filter_entry *newest = find_newest(c, key, all[0]);
  if (newest)
    *newest_version = newest->key.version;
  bool was_asked = *at == hash;
  *at = hash;
  pthread_mutex_unlock(&c->lock);
  return was_asked;
}

/* Is it better to replace `e` than `other`, which may be NULL? */
static bool is_staler(const struct filter_entry *e, const struct filter_entry *other)
{
  if (!other || e->is_committed != other->is_committed)
    return !other || !e->is_committed;
  return e->is_committed && e->last_use < other->last_use;
}

/* Choose the entry to replace, where `former` is the newest of its filter or NULL. NULL: all are held, or there is a
 * newer version. */
static struct filter_entry *choose(struct filter_cache *c, const struct filter_key *key, struct filter_entry *former)
{
  struct filter_entry *stalest = NULL;

  if (former && former->key.version > key->version)
    return NULL;
  if (former && former->key.version < key->version && former->n_holders == 0)
    return former;
  for (size_t i = 0; i < c->n_entries; i++) {
    struct filter_entry *e = &c->entries[i];
    if (e->n_holders == 0 && is_staler(e, stalest))
      stalest = e;
  }
  return stalest;
}

/* Claim an entry for a new version.
 *
 * former  the entry whose words it should begin with, held; the same entry if nobody else held it. NULL: none
 */
static struct filter_entry *claim(struct filter_cache *c, const struct filter_key *key, uint64_t since,
                                  struct filter_entry **former)
{
  pthread_mutex_lock(&c->lock);
  struct filter_entry *newest = find_newest(c, key, hash_of(key)), *e = choose(c, key, newest);
  *former = e && newest && newest->key.version >= since ? newest : NULL;
  if (*former)
    (*former)->n_holders++;
  if (e) {
    e->is_committed = false;
    e->id = ++c->n_ids;
    hold(c, e);
  }
  pthread_mutex_unlock(&c->lock);
  return e;
}

/* Begin an entry with the words of a former version. NULL: there is none. */
static void begin_with(struct filter_entry *e, const struct filter_entry *former)
{
  e->former = former ? former->key.version : 0;
  if (!former || former == e)
    return;
  e->words.n_words = former->words.n_words;
  e->words.n = former->words.n;
  memcpy(e->words.words, former->words.words, former->words.n_words * sizeof *e->words.words);
}

/* Write the key of an entry that only the caller can see. */
static err_t set_key(struct filter_entry *e, const struct filter_key *key)
{
  TRY(mem_grow(key->tree.n, 1, &e->tree_capacity, &e->tree));
  memcpy(e->tree, key->tree.p, key->tree.n);
  e->hash = hash_of(key);
  e->key = *key;
  e->key.tree.p = e->tree;
  return ERR_OK;
}

err_t filter_cache_begin(struct filter_cache *c, const struct filter_key *key, uint64_t since,
                         struct filter_entry **out)
{
  struct filter_entry *former = NULL;
  struct filter_entry *e = key->tree.n <= FILTER_CACHE_TREE_BYTES ? claim(c, key, since, &former) : NULL;

  if (e)
    begin_with(e, former);
  if (former)
    filter_cache_release(c, former);
  err_code_t err = e ? set_key(e, key) : ERR_OK;
  if (err != ERR_OK) {
    filter_cache_release(c, e);
    return err;
  }
  *out = e;
  return ERR_OK;
}

uint64_t filter_entry_former(const struct filter_entry *entry)
{
  return entry->former;
}

void filter_cache_commit(struct filter_cache *c, struct filter_entry *entry, const struct filter_words *w)
{
  pthread_mutex_lock(&c->lock);
  entry->words = *w;
  /* If another search was faster, this entry stays with its holder alone. */
  entry->is_committed = !find(c, &entry->key, entry->hash);
  pthread_mutex_unlock(&c->lock);
}

void filter_cache_release(struct filter_cache *c, struct filter_entry *entry)
{
  pthread_mutex_lock(&c->lock);
  entry->n_holders--;
  pthread_mutex_unlock(&c->lock);
}

struct filter_words filter_entry_words(const struct filter_entry *entry)
{
  return entry->words;
}

uint64_t filter_entry_id(const struct filter_entry *entry)
{
  return entry->id;
}

void filter_cache_note(struct filter_cache *c, bool was_patched)
{
  pthread_mutex_lock(&c->lock);
  c->stats.n_patched += was_patched;
  c->stats.n_evaluated += !was_patched;
  pthread_mutex_unlock(&c->lock);
}

void filter_cache_get_stats(struct filter_cache *c, struct filter_cache_stats *out)
{
  pthread_mutex_lock(&c->lock);
  *out = c->stats;
  pthread_mutex_unlock(&c->lock);
}
