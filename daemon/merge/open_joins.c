/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of the open queries by digest, a list of them for each partition, and one of those that are ready. */
#include "daemon/merge/open_joins.h"

#include "base/mem.h"

enum { BUCKETS = 1 << 14 };

/* How soon to look again at queries that are kept although their time is up. */
enum { LOOK_AGAIN_NS = 10000000 };

TAILQ_HEAD(join_list, open_join);

struct open_joins {
  size_t max_bytes;
  int64_t wait_ns;
  struct open_join **buckets; /* [BUCKETS] */
  struct join_list *order;    /* [n_partitions] */
  size_t n_partitions;
  struct join_list ready;
  size_t n, n_bytes;
  int64_t due_ns; /* no query's time is up before this */
};

err_t open_joins_open(size_t max_bytes, int64_t wait_ns, struct open_joins **out)
{
  AUTO(open_joins_close) struct open_joins *j = NULL;

  TRY(mem_array(1, sizeof *j, &j));
  TAILQ_INIT(&j->ready);
  j->max_bytes = max_bytes;
  j->wait_ns = wait_ns;
  j->due_ns = INT64_MAX;
  TRY(mem_array(BUCKETS, sizeof(struct open_join *), &j->buckets));
  *out = j;
  j = NULL;
  return ERR_OK;
}

void open_joins_close(struct open_joins **j)
{
  if (!*j)
    return;
  open_joins_clear(*j);
  mem_free(&(*j)->order);
  mem_free(&(*j)->buckets);
  mem_free(j);
}

void open_join_close(struct open_join **join)
{
  if (!*join)
    return;
  for (struct open_part *part = (*join)->parts, *next; part; part = next) {
    next = part->next;
    mem_free(&part);
  }
  mem_free(join);
}

/* Return the link that points to the query of a digest, or the last link of its bucket. */
static struct open_join **find_link(const struct open_joins *j, struct query_digest digest)
{
  struct open_join **link = &j->buckets[digest.lo % BUCKETS];

  while (*link && !query_digest_equal((*link)->digest, digest))
    link = &(*link)->next_in_bucket;
  return link;
}

/* Take a query out of everything. */
static void detach(struct open_joins *j, struct open_join *join)
{
  *find_link(j, join->digest) = join->next_in_bucket;
  TAILQ_REMOVE(&j->order[join->partition], join, in_order);
  if (join->is_ready)
    TAILQ_REMOVE(&j->ready, join, in_ready);
  j->n--;
  j->n_bytes -= join->n_bytes;
}

static void mark_ready(struct open_joins *j, struct open_join *join)
{
  if (!join->is_ready)
    TAILQ_INSERT_TAIL(&j->ready, join, in_ready);
  join->is_ready = true;
}

/* Have a list for each partition. The heads of lists with members are never moved: TAILQ points back to them. */
static err_t grow_partitions(struct open_joins *j, int32_t partition)
{
  size_t n = (size_t)partition + 1;
  struct join_list *lists;

  if (n <= j->n_partitions)
    return ERR_OK;
  TRY(mem_array(n, sizeof *lists, &lists));
  for (size_t i = 0; i < n; i++) {
    TAILQ_INIT(&lists[i]);
    if (i < j->n_partitions)
      TAILQ_CONCAT(&lists[i], &j->order[i], in_order);
  }
  mem_free(&j->order);
  j->order = lists;
  j->n_partitions = n;
  return ERR_OK;
}

/* Put a query into the order of its partition. It is the last one, unless offsets have begun again. */
static void put_in_order(struct open_joins *j, struct open_join *join)
{
  struct join_list *list = &j->order[join->partition];
  struct open_join *before = TAILQ_LAST(list, join_list);

  while (before && before->first_offset > join->first_offset)
    before = TAILQ_PREV(before, join_list, in_order);
  if (before)
    TAILQ_INSERT_AFTER(list, before, join, in_order);
  else
    TAILQ_INSERT_HEAD(list, join, in_order);
}

static err_t add_join(struct open_joins *j, const struct open_joins_part *part, struct query_digest digest,
                      int64_t now_ns, struct open_join **out)
{
  struct open_join *join;

  TRY(grow_partitions(j, part->partition));
  TRY(mem_array(1, sizeof *join + part->key.n, &join));
  memcpy(join + 1, part->key.p, part->key.n);
  join->key = span_of(join + 1, part->key.n);
  join->digest = digest;
  join->partition = part->partition;
  join->first_offset = part->offset;
  join->since_ns = now_ns;
  join->n_bytes = sizeof *join + part->key.n;
  put_in_order(j, join);
  *find_link(j, digest) = join;
  j->n++;
  j->n_bytes += join->n_bytes;
  *out = join;
  return ERR_OK;
}

static bool has_part(const struct open_join *join, const struct partial *partial)
{
  for (const struct open_part *p = join->parts; p; p = p->next) {
    if (p->shard == partial->shard && p->n_shards == partial->n_shards)
      return true;
  }
  return false;
}

static err_t add_part(struct open_joins *j, struct open_join *join, const struct open_joins_part *from)
{
  struct open_part *part;

  TRY(mem_array(1, sizeof *part + from->value.n, &part));
  *part = (struct open_part){ join->parts, from->partial->shard, from->partial->n_shards, from->value.n };
  memcpy(part->value, from->value.p, from->value.n);
  join->parts = part;
  join->n_parts++;
  join->n_bytes += sizeof *part + part->n;
  j->n_bytes += sizeof *part + part->n;
  return ERR_OK;
}

static size_t count_layout(const struct open_join *join, uint32_t n_shards)
{
  size_t n = 0;

  for (const struct open_part *p = join->parts; p; p = p->next)
    n += p->n_shards == n_shards;
  return n;
}

/* The shards say how much time is left, by their own clocks; the latest counts. Our wall clock does not matter. A shard
 * for which no time is left says nothing: its clock may be ahead of the others'. */
static void set_time(struct open_joins *j, struct open_join *join, const struct partial *partial, int64_t now_ns)
{
  int64_t wait_end_ns = join->since_ns + j->wait_ns, end_ns = wait_end_ns;
  bool says_nothing = partial->has_deadline && partial->left_us == 0;

  if (partial->has_deadline && !says_nothing && partial->left_us < (uint64_t)j->wait_ns / 1000)
    end_ns = now_ns + (int64_t)partial->left_us * 1000;
  if (end_ns > wait_end_ns)
    end_ns = wait_end_ns;
  if (!join->has_time || (!says_nothing && end_ns > join->give_up_ns))
    join->give_up_ns = end_ns;
  join->has_time |= !says_nothing;
  if (join->give_up_ns < j->due_ns)
    j->due_ns = join->give_up_ns;
}

err_t open_joins_add(struct open_joins *j, const struct open_joins_part *part, int64_t now_ns,
                     enum open_joins_added *out)
{
  struct query_digest digest = query_digest_of(part->key);
  struct open_join *join = *find_link(j, digest);

  if (!join)
    TRY(add_join(j, part, digest, now_ns, &join));
  *out = has_part(join, part->partial) ? OPEN_JOINS_DUPLICATE : OPEN_JOINS_ADDED;
  if (*out == OPEN_JOINS_DUPLICATE)
    return ERR_OK;
  TRY(add_part(j, join, part));
  set_time(j, join, part->partial, now_ns);
  if (count_layout(join, part->partial->n_shards) == part->partial->n_shards)
    mark_ready(j, join);
  return ERR_OK;
}

int64_t open_joins_due_ns(const struct open_joins *j)
{
  return j->due_ns;
}

/* Return how far a partition is read. One that is not ours any more has no end. */
static struct partial_reach find_reach(const struct partial_reach *reach, size_t n, int32_t partition)
{
  for (size_t i = 0; i < n; i++) {
    if (reach[i].partition == partition)
      return reach[i];
  }
  return (struct partial_reach){ .partition = partition };
}

/* May a part of a query whose time is up be in the log, where it could not be read yet? */
static bool may_have_part(const struct open_joins *j, struct open_join *join, const struct partial_reach *reach)
{
  bool has_deadline = join->give_up_ns < join->since_ns + j->wait_ns;

  if (has_deadline || !open_joins_have_room(j))
    return false;
  if (!join->end_then || reach->end < join->end_then) /* less than it was: the topic was created again */
    join->end_then = reach->end;
  return reach->next < join->end_then;
}

static void note_time(struct open_joins *j, struct open_join *join, int64_t now_ns, const struct partial_reach *reach)
{
  int64_t due_ns = join->give_up_ns;

  if (due_ns <= now_ns && !may_have_part(j, join, reach)) {
    mark_ready(j, join);
    return;
  }
  if (due_ns <= now_ns)
    due_ns = now_ns + LOOK_AGAIN_NS;
  if (due_ns < j->due_ns)
    j->due_ns = due_ns;
}

/* The times of queries are in no order, because deadlines differ. All are looked at once one may be up. */
void open_joins_note_time(struct open_joins *j, int64_t now_ns, const struct partial_reach *reach, size_t n)
{
  struct open_join *join;

  if (now_ns < j->due_ns)
    return;
  j->due_ns = INT64_MAX;
  for (size_t p = 0; p < j->n_partitions; p++) {
    struct partial_reach of_partition = find_reach(reach, n, (int32_t)p);
    TAILQ_FOREACH(join, &j->order[p], in_order)
    {
      note_time(j, join, now_ns, &of_partition);
    }
  }
}

struct open_join *open_joins_take_ready(struct open_joins *j)
{
  struct open_join *join = TAILQ_FIRST(&j->ready);

  if (join)
    detach(j, join);
  return join;
}

void open_joins_drop(struct open_joins *j, struct query_digest digest)
{
  struct open_join *join = *find_link(j, digest);

  if (join)
    detach(j, join);
  open_join_close(&join);
}

void open_joins_clear(struct open_joins *j)
{
  for (size_t p = 0; p < j->n_partitions; p++) {
    struct open_join *join;
    while ((join = TAILQ_FIRST(&j->order[p]))) {
      detach(j, join);
      open_join_close(&join);
    }
  }
  j->due_ns = INT64_MAX;
}

int64_t open_joins_oldest(const struct open_joins *j, int32_t partition)
{
  const struct open_join *join = (size_t)partition < j->n_partitions ? TAILQ_FIRST(&j->order[partition]) : NULL;

  return join ? join->first_offset : INT64_MAX;
}

bool open_joins_have_room(const struct open_joins *j)
{
  return j->n_bytes < j->max_bytes;
}

size_t open_joins_count(const struct open_joins *j)
{
  return j->n;
}

size_t open_joins_bytes(const struct open_joins *j)
{
  return j->n_bytes;
}
