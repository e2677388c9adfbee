/* SPDX-License-Identifier: Apache-2.0 */
/* Helper threads, each with one state that both sides change atomically. A thread that waits for the state of a helper
 * to change spins for a moment, then sleeps on it (futex). */
#include "engine/team/team.h"

#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

/* Waking a thread that sleeps takes about this long, and the next search often begins sooner than that. */
enum { SPIN_NS = 50000, SPINS_PER_LOOK = 64 };

/* IDLE -> TAKEN -> POSTED -> RUNNING -> DONE -> IDLE, and back from POSTED to IDLE if the helper has not begun. */
enum helper_state { IDLE, TAKEN, POSTED, RUNNING, DONE, CLOSING };

struct team_helper {
  _Alignas(64) _Atomic uint32_t state;
  _Atomic uint32_t n_sleeping; /* threads that sleep until the state changes */
  team_work *work;             /* written while TAKEN */
  void *context;
  size_t member;
  _Atomic int cpu; /* the core that it ran on last */
  pthread_t thread;
  bool has_thread;
};

struct team {
  size_t n_running_max;
  cpu_set_t cpus; /* that the process may use */
  _Alignas(64) _Atomic size_t n_running;
  struct team_helper *helpers;
  size_t n_helpers;
  pthread_mutex_t mutex; /* for helpers that give way */
  pthread_cond_t changed;
  _Atomic size_t n_waiting; /* helpers that give way */
};

static void pause_briefly(void)
{
#if defined __x86_64__
  __builtin_ia32_pause();
#endif
}

/* ---- Waiting for a state ---- */

static void change_state(struct team_helper *h, enum helper_state state)
{
  atomic_store(&h->state, (uint32_t)state);
  if (atomic_load(&h->n_sleeping) > 0)
    syscall(SYS_futex, &h->state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Return when the state is, or was, another one. */
static void wait_while(struct team_helper *h, uint32_t state)
{
  int64_t end_ns = clock_now_ns() + SPIN_NS;

  do {
    for (int i = 0; i < SPINS_PER_LOOK; i++) {
      if (atomic_load_explicit(&h->state, memory_order_acquire) != state)
        return;
      pause_briefly();
    }
  } while (clock_now_ns() < end_ns);
  atomic_fetch_add(&h->n_sleeping, 1);
  syscall(SYS_futex, &h->state, FUTEX_WAIT_PRIVATE, state, NULL, NULL, 0); /* returns at once if it has changed */
  atomic_fetch_sub(&h->n_sleeping, 1);
}

/* ---- A helper ---- */

static void *help(void *context)
{
  struct team_helper *h = context;

  atomic_store_explicit(&h->cpu, sched_getcpu(), memory_order_relaxed);
  for (;;) {
    uint32_t state = atomic_load(&h->state);
    if (state == CLOSING)
      return NULL;
    if (state != POSTED || !atomic_compare_exchange_strong(&h->state, &state, RUNNING)) {
      wait_while(h, state);
      continue;
    }
    h->work(h->context, h->member);
    atomic_store_explicit(&h->cpu, sched_getcpu(), memory_order_relaxed);
    change_state(h, DONE);
  }
}

/* Some schedulers wake a thread on the core of the one that wakes it, even if others are idle: virtual machines like to
 * let virtual cores sleep. A helper would then take its caller's time. So a helper that ran here last must run
 * elsewhere.
 */
static void send_elsewhere(const struct team *t, struct team_helper *h)
{
  int here = sched_getcpu();
  cpu_set_t others = t->cpus;

  if (here < 0 || here != atomic_load_explicit(&h->cpu, memory_order_relaxed))
    return;
  CPU_CLR((size_t)here, &others);
  if (CPU_COUNT(&others) > 0)
    pthread_setaffinity_np(h->thread, sizeof others, &others);
}

static err_t start_helper(struct team_helper *h, size_t number)
{
  char name[16]; /* with the final zero, as much as the kernel keeps */

  if (pthread_create(&h->thread, NULL, help, h) != 0)
    FAIL(ERR_SYSTEM, "thread %zu that helps searches cannot be started", number);
  h->has_thread = true;
  snprintf(name, sizeof name, "search-help-%zu", number % 100);
  pthread_setname_np(h->thread, name);
  return ERR_OK;
}

err_t team_open(size_t n_helpers, size_t n_running_max, struct team **out)
{
  AUTO(team_close) struct team *t = NULL;

  TRY(mem_array(1, sizeof *t, &t));
  pthread_mutex_init(&t->mutex, NULL);
  pthread_cond_init(&t->changed, NULL);
  t->n_running_max = n_running_max;
  TRY(mem_array(n_helpers, sizeof *t->helpers, &t->helpers));
  t->n_helpers = n_helpers;
  if (sched_getaffinity(0, sizeof t->cpus, &t->cpus) != 0)
    CPU_ZERO(&t->cpus); /* more cores than the set has room for: the scheduler decides alone */
  for (size_t i = 0; i < n_helpers; i++)
    TRY(start_helper(&t->helpers[i], i + 1));
  *out = t;
  t = NULL;
  return ERR_OK;
}

void team_close(struct team **t)
{
  if (!*t)
    return;
  for (size_t i = 0; i < (*t)->n_helpers; i++) {
    struct team_helper *h = &(*t)->helpers[i];
    change_state(h, CLOSING);
    if (h->has_thread)
      pthread_join(h->thread, NULL);
  }
  pthread_mutex_destroy(&(*t)->mutex);
  pthread_cond_destroy(&(*t)->changed);
  mem_free(&(*t)->helpers);
  mem_free(t);
}

/* ---- Room for threads ---- */

static void wake_waiting(struct team *t)
{
  if (atomic_load(&t->n_waiting) == 0)
    return;
  pthread_mutex_lock(&t->mutex);
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->mutex);
}

void team_enter(struct team *t)
{
  atomic_fetch_add(&t->n_running, 1);
}

void team_leave(struct team *t)
{
  atomic_fetch_sub(&t->n_running, 1);
  wake_waiting(t);
}

/* Count one thread more, unless as many as may search do so. */
static bool enter_if_room(struct team *t)
{
  size_t n = atomic_load(&t->n_running);

  while (n < t->n_running_max) {
    if (atomic_compare_exchange_weak(&t->n_running, &n, n + 1))
      return true;
  }
  return false;
}

void team_give_way(struct team_search *s, const _Atomic size_t *n_claimed, size_t n_steps)
{
  struct team *t = s->team;

  if (atomic_load_explicit(&t->n_running, memory_order_relaxed) <= t->n_running_max)
    return;
  pthread_mutex_lock(&t->mutex);
  if (atomic_load(&t->n_running) > t->n_running_max) {
    bool has_room = false;
    atomic_fetch_add(&t->n_waiting, 1);
    atomic_fetch_sub(&t->n_running, 1);
    while (atomic_load(n_claimed) < n_steps && !(has_room = enter_if_room(t)))
      pthread_cond_wait(&t->changed, &t->mutex);
    if (!has_room)
      team_enter(t); /* counted again here, because team_end() discounts every member that joined */
    atomic_fetch_sub(&t->n_waiting, 1);
  }
  pthread_mutex_unlock(&t->mutex);
}

void team_wake(struct team_search *s)
{
  wake_waiting(s->team);
}

/* ---- A search ---- */

static struct team_helper *take_idle(struct team *t)
{
  for (size_t i = 0; i < t->n_helpers; i++) {
    uint32_t idle = IDLE;
    if (atomic_load_explicit(&t->helpers[i].state, memory_order_relaxed) == IDLE &&
        atomic_compare_exchange_strong(&t->helpers[i].state, &idle, TAKEN))
      return &t->helpers[i];
  }
  return NULL;
}

void team_recruit(struct team_search *s)
{
  struct team *t = s->team;

  while (s->n_members < s->n_max && atomic_load_explicit(&t->n_running, memory_order_relaxed) < t->n_running_max &&
         enter_if_room(t)) {
    struct team_helper *h = take_idle(t);
    if (!h) {
      team_leave(t);
      return;
    }
    send_elsewhere(t, h);
    h->work = s->work;
    h->context = s->context;
    h->member = s->n_members;
    s->helpers[s->n_members++] = h;
    change_state(h, POSTED);
  }
}

void team_begin(struct team_search *s)
{
  assert(s->n_max >= 1 && s->n_max <= TEAM_MEMBERS_MAX);
  s->n_members = 1;
  team_recruit(s);
}

void team_end(struct team_search *s)
{
  for (size_t i = 1; i < s->n_members; i++) {
    struct team_helper *h = s->helpers[i];
    uint32_t state = POSTED;
    if (!atomic_compare_exchange_strong(&h->state, &state, IDLE)) {
      while ((state = atomic_load(&h->state)) != DONE)
        wait_while(h, state);
      change_state(h, IDLE);
    }
    team_leave(s->team);
  }
}
