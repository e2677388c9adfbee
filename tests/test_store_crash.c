/* A process that applies batches is killed at random moments; what it leaves must be exactly what the log says at the
 * positions that it stored, and nothing that it reported as committed may be missing.
 *
 * The log is a function of the offset, so that child and parent need not talk. One counter, in memory that both share,
 * tells how far the child has reported. LMDB must not live through a fork, so the parent has the store
 * open between children only.
 */
#include "store/store.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/store_private.h"
#include "tests/support/store_oracle.h"
#include "tests/support/temp_dir.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  KILLS = 100,
  REBUILD_KILLS = 40,
  PARTITIONS = 3,
  BATCH_MAX = 60,
  OVERLAP_MAX = 10,     /* changes that a child applies again when it starts */
  LIFE_US_MAX = 40000,  /* of a child */
  SHORT_LIFE_US = 4000, /* where the disk has been so slow that the time is used up */
  BUDGET_S = 7,         /* of one test: from then on lives are short */
  POLL_US = 500,
  PATIENCE_US = 1000000,
  LOG_LENGTH = 150,     /* of one generation, where the child rebuilds */
  SWEEP_MAX = 9,
};

static uint64_t seed;

/* Shared with the child. */
struct progress {
  _Atomic int64_t committed;  /* next offset, once store_apply() has returned */
  _Atomic int64_t generation; /* the newest one that is complete */
  _Atomic unsigned n_batches;
};

struct fixture {
  struct temp_dir dir;
  char path[PATH_MAX];
  struct progress *progress;
  int64_t deadline_ns;
};

static int setup(void **state)
{
  struct fixture *f = calloc(1, sizeof *f);

  assert_non_null(f);
  temp_dir_init(&f->dir);
  snprintf(f->path, sizeof f->path, "%s/store", f->dir.path);
  f->progress = mmap(NULL, sizeof *f->progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(f->progress != MAP_FAILED);
  f->deadline_ns = clock_now_ns() + BUDGET_S * CLOCK_NS_PER_S;
  *state = f;
  return 0;
}

static int teardown(void **state)
{
  struct fixture *f = *state;

  munmap(f->progress, sizeof *f->progress);
  temp_dir_fini(&f->dir);
  free(f);
  return 0;
}

/* The change at an offset of the log of one generation. A key stays in its partition. */
static struct oracle_item log_at(uint64_t generation, int64_t offset, size_t n_ids)
{
  struct dice dice = { seed ^ (generation << 40) ^ (uint64_t)offset };
  struct oracle_item change = {
    .id = (uint32_t)(dice_below(&dice, n_ids) + generation * 7 % 90),
    .is_delete = dice_below(&dice, 4) == 0,
    .offset = offset,
    .generation = generation,
  };

  change.partition = (int32_t)(change.id % PARTITIONS);
  for (size_t i = 0; i < ORACLE_SPACES; i++)
    change.seeds[i] = dice_below(&dice, 2) ? dice_u64(&dice) | 1 : 0;
  return change;
}

/* Apply the log from `from` to before `to`, in one batch. */
static err_t apply_log(struct store *s, int64_t from, int64_t to, size_t n_ids)
{
  struct item_change changes[BATCH_MAX + OVERLAP_MAX];
  struct store_position positions[PARTITIONS];
  static struct region region;

  region_reset(&region);
  for (int64_t offset = from; offset < to; offset++) {
    struct oracle_item item = log_at(s->meta.generation, offset, n_ids);
    changes[offset - from] = oracle_change(&item, &region);
  }
  for (int32_t i = 0; i < PARTITIONS; i++)
    positions[i] = (struct store_position){ i, to, to - 1, s->meta.generation, to, 0 };
  return store_apply(s, changes, (size_t)(to - from), positions, PARTITIONS, NULL);
}

/* The next offset of the log. All partitions say the same, as they were written together. */
static int64_t stored_next(const struct store *s)
{
  size_t n;
  const struct store_position *positions = store_positions(s, &n);

  if (n == 0)
    return 0;
  assert_int_equal(n, PARTITIONS);
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(positions[i].partition, i);
    assert_int_equal(positions[i].next, positions[0].next);
    assert_int_equal(positions[i].last_digest, s->meta.generation);
  }
  return positions[0].next;
}

static int complain(void)
{
  fprintf(stderr, "child: %s: %s\n", err_origin(), err_message());
  return 1;
}

static void wait_for_a_batch(const struct fixture *f)
{
  unsigned before = atomic_load(&f->progress->n_batches);
  int left_us = PATIENCE_US;

  for (; atomic_load(&f->progress->n_batches) == before && left_us > 0; left_us -= POLL_US)
    usleep(POLL_US);
}

/* Run `child` for a random while, then kill it; every other time, count from its next batch, so that the test gets on
 * where the disk is slow. It never ends by itself. */
static void run_and_kill(struct fixture *f, struct dice *dice, int (*child)(struct fixture *, struct dice *))
{
  int status;

  fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would outlive a test that is cut short */
    _exit(child(f, dice));
  }
  bool is_late = clock_now_ns() > f->deadline_ns;
  if (!is_late && dice_below(dice, 2))
    wait_for_a_batch(f);
  usleep((useconds_t)dice_below(dice, is_late ? SHORT_LIFE_US : LIFE_US_MAX));
  kill(pid, SIGKILL);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
    fail_msg("the child ended with status %#x", (unsigned)status);
}

/* --- kill while batches are applied --- */

enum { IDS = 200 };

static int apply_forever(struct fixture *f, struct dice *dice)
{
  struct store *s = NULL;

  if (store_open_sized(f->path, 256 * 1024, &s) != ERR_OK) /* a map that grows on the way */
    return complain();
  int64_t next = stored_next(s);
  int64_t from = next - (int64_t)dice_below(dice, OVERLAP_MAX + 1);
  for (from = from < 0 ? 0 : from;; from = next) {
    next += 1 + (int64_t)dice_below(dice, BATCH_MAX);
    if (apply_log(s, from, next, IDS) != ERR_OK)
      return complain();
    atomic_store(&f->progress->committed, next);
    atomic_fetch_add(&f->progress->n_batches, 1);
  }
}

static void every_kill_leaves_exactly_what_the_positions_say(void **state)
{
  struct fixture *f = *state;
  struct dice dice = { seed };
  struct oracle o = { 0 };
  int64_t applied = 0;
  int n_beyond = 0; /* kills between commit and report */

  for (int kill = 0; kill < KILLS; kill++) {
    struct store *s = NULL;
    bool is_skipped;
    bool is_whole;
    run_and_kill(f, &dice, apply_forever);
    assert_ok(store_open(f->path, &s));
    int64_t next = stored_next(s);
    int64_t reported = atomic_load(&f->progress->committed);
    assert_true(next >= reported && next <= reported + BATCH_MAX + OVERLAP_MAX);
    n_beyond += next > reported;
    for (; applied < next; applied++) {
      struct oracle_item change = log_at(1, applied, IDS);
      change.generation = 0;
      oracle_apply(&o, &change, &is_skipped, &is_whole);
    }
    oracle_compare(&o, s); /* to the slot: batches are cut anywhere, their order is the log's */
    store_close(&s);
  }
  print_message("%d kills, %lld changes, %d kills between commit and report\n", KILLS, (long long)applied, n_beyond);
  assert_true(applied > KILLS);
  oracle_fini(&o);
}

/* --- kill while rebuilding --- */

enum { REBUILD_IDS = 60 };

static err_code_t ignore_items(void *context, struct item_change *changes, size_t n)
{
  (void)context;
  (void)changes;
  (void)n;
  return ERR_OK;
}

/* Read the log of the present generation to its end, sweep, begin the next one. */
static err_t rebuild_once(struct fixture *f, struct store *s, struct dice *dice)
{
  bool is_done = !store_is_rebuilding(s);

  for (int64_t next = stored_next(s); next < LOG_LENGTH;) {
    int64_t from = next;
    next += 1 + (int64_t)dice_below(dice, 40);
    next = next > LOG_LENGTH ? LOG_LENGTH : next;
    TRY(apply_log(s, from, next, REBUILD_IDS));
    atomic_fetch_add(&f->progress->n_batches, 1);
  }
  while (!is_done)
    TRY(store_sweep(s, SWEEP_MAX, ignore_items, NULL, &is_done));
  atomic_store(&f->progress->generation, (int64_t)s->meta.generation);
  return store_begin_rebuild(s);
}

static int rebuild_forever(struct fixture *f, struct dice *dice)
{
  struct store *s = NULL;

  if (store_open_sized(f->path, 256 * 1024, &s) != ERR_OK)
    return complain();
  for (;;)
    if (rebuild_once(f, s, dice) != ERR_OK)
      return complain();
}

/* The items that the log of a generation makes, up to an offset, from nothing. */
static void replay(uint64_t generation, int64_t to, struct oracle *o)
{
  bool is_skipped;
  bool is_whole;

  o->generation = generation;
  for (int64_t offset = 0; offset < to; offset++) {
    struct oracle_item change = log_at(generation, offset, REBUILD_IDS);
    oracle_apply(o, &change, &is_skipped, &is_whole);
  }
}

static bool is_touched(uint64_t generation, int64_t to, uint32_t id)
{
  for (int64_t offset = 0; offset < to; offset++)
    if (log_at(generation, offset, REBUILD_IDS).id == id)
      return true;
  return false;
}

/* What the store may hold in the middle of a rebuild: what the new log says of the keys that it has named, and what the
 * old one said of the others, as far as the sweep has left them. */
struct expectation {
  struct oracle now;
  struct oracle before;
  uint64_t generation;
  int64_t next;
  size_t n_now;
  size_t n_before;
};

static err_code_t check_items(void *context, struct item_change *changes, size_t n)
{
  struct expectation *e = context;
  struct region region = { 0 };

  for (size_t i = 0; i < n; i++) {
    bool is_found = false;
    for (size_t j = 0; j < e->now.n && !is_found; j++) {
      struct item_change want = oracle_change(&e->now.items[j], &region);
      is_found = oracle_is_same(&want, &changes[i]);
      e->n_now += is_found;
    }
    for (size_t j = 0; j < e->before.n && !is_found; j++) {
      struct item_change want = oracle_change(&e->before.items[j], &region);
      is_found = oracle_is_same(&want, &changes[i]) && !is_touched(e->generation, e->next, e->before.items[j].id);
      e->n_before += is_found;
    }
    if (!is_found)
      fail_msg("generation %llu, offset %lld: an item that neither log gives", (unsigned long long)e->generation,
               (long long)e->next);
  }
  region_fini(&region);
  return ERR_OK;
}

static size_t count_untouched(const struct expectation *e)
{
  size_t n = 0;

  for (size_t i = 0; i < e->before.n; i++)
    n += !is_touched(e->generation, e->next, e->before.items[i].id);
  return n;
}

static void verify_rebuild(struct store *s)
{
  struct expectation e = { .generation = s->meta.generation, .next = stored_next(s) };

  replay(e.generation, e.next, &e.now);
  if (e.generation > 1)
    replay(e.generation - 1, LOG_LENGTH, &e.before);
  assert_ok(store_scan(s, 16, check_items, &e));
  assert_int_equal(e.n_now, e.now.n);
  if (e.next < LOG_LENGTH)
    assert_int_equal(e.n_before, count_untouched(&e)); /* nothing is swept before the log is at its end */
  if (!store_is_rebuilding(s))
    assert_int_equal(e.n_before, 0);
  oracle_fini(&e.now);
  oracle_fini(&e.before);
}

static void every_kill_in_a_rebuild_leaves_one_that_goes_on(void **state)
{
  struct fixture *f = *state;
  struct dice dice = { seed + 1 };
  uint64_t generation = 0;
  int n_cut = 0; /* kills in the middle of a rebuild */

  for (int kill = 0; kill < REBUILD_KILLS; kill++) {
    struct store *s = NULL;
    run_and_kill(f, &dice, rebuild_forever);
    assert_ok(store_open(f->path, &s));
    assert_true(s->meta.generation >= (uint64_t)atomic_load(&f->progress->generation));
    n_cut += store_is_rebuilding(s);
    generation = s->meta.generation;
    verify_rebuild(s);
    store_close(&s);
  }
  print_message("%d kills, %llu generations, %d kills in a rebuild\n", REBUILD_KILLS, (unsigned long long)generation,
                n_cut);
  assert_true(generation > 1 && n_cut > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_kill_leaves_exactly_what_the_positions_say, setup, teardown),
    cmocka_unit_test_setup_teardown(every_kill_in_a_rebuild_leaves_one_that_goes_on, setup, teardown),
  };

  seed = dice_seed();
  log_set_level(LOG_LEVEL_WARN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
