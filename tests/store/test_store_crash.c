/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes: a process that applies batches is killed at random moments. The store must then hold exactly the log up to
 * its positions, and nothing that the process reported as committed may be missing.
 *
 * The log is a function of the offset, so child and parent need not communicate. A counter in shared memory tells how
 * far the child has reported. LMDB does not survive a fork, so the parent opens the store only between children.
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
  OVERLAP_MAX = 10,     /* changes that a child applies a second time when it starts */
  LIFE_US_MAX = 40000,  /* life of a child */
  SHORT_LIFE_US = 4000, /* life of a child once the budget is used up, on a slow disk */
  BUDGET_S = 7,         /* time for one test; after it, children have short lives */
  POLL_US = 500,
  PATIENCE_US = 1000000,
  LOG_LENGTH = 150,     /* length of each log in the rebuild test */
};

static uint64_t seed;

/* Shared with the child. */
struct progress {
  _Atomic int64_t committed; /* next offset after a store_apply() that has returned */
  _Atomic int64_t finished;  /* number of the newest finished rebuild */
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

/* Make the change at an offset of a log. Now and then a key moves to another partition. */
static struct oracle_item log_at(uint64_t log, int64_t offset, size_t n_ids)
{
  struct dice dice = { seed ^ (log << 40) ^ (uint64_t)offset };
  struct oracle_item change = {
    .id = (uint32_t)(dice_below(&dice, n_ids) + log * 7 % 90),
    .is_delete = dice_below(&dice, 4) == 0,
    .offset = offset,
  };

  change.partition = (int32_t)((change.id + (dice_below(&dice, 8) == 0)) % PARTITIONS);
  change.timestamp_ms = 1 + offset + (int64_t)dice_below(&dice, 50);
  for (size_t i = 0; i < ORACLE_SPACES; i++)
    change.seeds[i] = dice_below(&dice, 2) ? dice_u64(&dice) | 1 : 0;
  oracle_draw_attributes(&dice, &change);
  return change;
}

/* Apply the log's changes from..to-1 in one batch. */
static err_t apply_log(struct store *s, uint64_t log, int64_t from, int64_t to, size_t n_ids)
{
  struct item_change changes[BATCH_MAX + OVERLAP_MAX];
  struct store_position positions[PARTITIONS];
  static struct region region;

  region_reset(&region);
  for (int64_t offset = from; offset < to; offset++) {
    struct oracle_item item = log_at(log, offset, n_ids);
    changes[offset - from] = oracle_change(&item, &region);
  }
  for (int32_t i = 0; i < PARTITIONS; i++)
    positions[i] = (struct store_position){ { i, to }, to - 1, log, to, 0 };
  return store_apply(s, changes, (size_t)(to - from), positions, PARTITIONS, NULL);
}

/* Return the next offset of the log. All partitions have the same one, because they were stored together. */
static int64_t stored_next(const struct store *s, uint64_t log)
{
  size_t n;
  const struct store_position *positions = store_positions(s, &n);

  if (n == 0)
    return 0;
  assert_int_equal(n, PARTITIONS);
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(positions[i].at.partition, i);
    assert_int_equal(positions[i].at.next, positions[0].at.next);
    assert_int_equal(positions[i].last_digest, log);
  }
  return positions[0].at.next;
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

/* Run `child` for a random time, then kill it. Every other time the clock starts at its next batch, so the test also
 * makes progress on a slow disk. The child never ends by itself. */
static void run_and_kill(struct fixture *f, struct dice *dice, int (*child)(struct fixture *, struct dice *))
{
  int status;

  fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* without this it would outlive a test that is aborted */
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

/* ---- Kill while batches are applied ---- */

enum { IDS = 200 };

static int apply_forever(struct fixture *f, struct dice *dice)
{
  struct store *s = NULL;

  if (open_store_sized(f->path, 256 * 1024, &s) != ERR_OK) /* a map that will have to grow */
    return complain();
  int64_t next = stored_next(s, 1);
  int64_t from = next - (int64_t)dice_below(dice, OVERLAP_MAX + 1);
  for (from = from < 0 ? 0 : from;; from = next) {
    next += 1 + (int64_t)dice_below(dice, BATCH_MAX);
    if (apply_log(s, 1, from, next, IDS) != ERR_OK)
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
  int n_beyond = 0; /* kills between a commit and its report */

  for (int kill = 0; kill < KILLS; kill++) {
    struct store *s = NULL;
    run_and_kill(f, &dice, apply_forever);
    assert_ok(open_store(f->path, &s));
    int64_t next = stored_next(s, 1);
    int64_t reported = atomic_load(&f->progress->committed);
    assert_true(next >= reported && next <= reported + BATCH_MAX + OVERLAP_MAX);
    n_beyond += next > reported;
    for (; applied < next; applied++) {
      struct oracle_item change = log_at(1, applied, IDS);
      oracle_apply(&o, &change);
    }
    oracle_compare(&o, s); /* slot by slot: batches end anywhere, but their order is that of the log */
    store_close(&s);
  }
  print_message("%d kills, %lld changes, %d kills between commit and report\n", KILLS, (long long)applied, n_beyond);
  assert_true(applied > KILLS);
  oracle_fini(&o);
}

/* ---- Kill while rebuilding ---- */

enum { REBUILD_IDS = 60, TIDY_MAX = 25 };

/* Rebuild number n reads log n to its end; then the next rebuild begins. Dropped rows are freed meanwhile. */
static err_t rebuild_once(struct fixture *f, struct store *s, struct dice *dice)
{
  uint64_t log = store_rebuild_number(s);
  bool is_done;

  if (!store_is_rebuilding(s))
    return store_begin_rebuild(s);
  for (int64_t next = stored_next(s, log); next < LOG_LENGTH;) {
    int64_t from = next;
    next += 1 + (int64_t)dice_below(dice, 40);
    next = next > LOG_LENGTH ? LOG_LENGTH : next;
    TRY(apply_log(s, log, from, next, REBUILD_IDS));
    atomic_fetch_add(&f->progress->n_batches, 1);
    TRY(store_tidy(s, TIDY_MAX, &is_done));
  }
  TRY(store_finish_rebuild(s));
  atomic_store(&f->progress->finished, (int64_t)log);
  return ERR_OK;
}

static int rebuild_forever(struct fixture *f, struct dice *dice)
{
  struct store *s = NULL;

  if (open_store_sized(f->path, 256 * 1024, &s) != ERR_OK)
    return complain();
  for (;;)
    if (rebuild_once(f, s, dice) != ERR_OK)
      return complain();
}

/* Assert that the live items are those that a log makes up to an offset, starting from nothing. */
static void verify_live(struct store *s, uint64_t log, int64_t to)
{
  struct oracle o = { 0 };

  for (int64_t offset = 0; log > 0 && offset < to; offset++) {
    struct oracle_item change = log_at(log, offset, REBUILD_IDS);
    oracle_apply(&o, &change);
  }
  oracle_compare(&o, s);
  oracle_fini(&o);
}

/* A rebuild that this test finished early: its log, and the offset that it had reached. */
struct cut_short {
  uint64_t log;
  int64_t next;
};

static void verify_rebuild(struct store *s, struct dice *dice, struct cut_short *cut)
{
  uint64_t newest = store_rebuild_number(s);
  uint64_t log = store_is_rebuilding(s) ? newest - 1 : newest;

  verify_live(s, log, log == cut->log ? cut->next : LOG_LENGTH);
  if (!store_is_rebuilding(s) || dice_below(dice, 2))
    return;
  *cut = (struct cut_short){ newest, stored_next(s, newest) };
  assert_ok(store_finish_rebuild(s)); /* to inspect it */
  verify_live(s, cut->log, cut->next);
}

static void every_kill_in_a_rebuild_leaves_two_whole_catalogues(void **state)
{
  struct fixture *f = *state;
  struct dice dice = { seed + 1 };
  struct cut_short cut = { 0 };
  uint64_t newest = 0;
  int n_cut = 0; /* kills during a rebuild */

  for (int kill = 0; kill < REBUILD_KILLS; kill++) {
    struct store *s = NULL;
    run_and_kill(f, &dice, rebuild_forever);
    assert_ok(open_store(f->path, &s));
    newest = store_rebuild_number(s);
    assert_true(newest >= (uint64_t)atomic_load(&f->progress->finished));
    n_cut += store_is_rebuilding(s);
    verify_rebuild(s, &dice, &cut);
    store_close(&s);
  }
  print_message("%d kills, %llu rebuilds, %d kills in one\n", REBUILD_KILLS, (unsigned long long)newest, n_cut);
  assert_true(newest > 1 && n_cut > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_kill_leaves_exactly_what_the_positions_say, setup, teardown),
    cmocka_unit_test_setup_teardown(every_kill_in_a_rebuild_leaves_two_whole_catalogues, setup, teardown),
  };

  seed = dice_seed();
  log_set_level(LOG_LEVEL_WARN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
