/* C11 threads as POSIX threads, for builds with the thread sanitizer.
 *
 * The sanitizer watches pthread_create, pthread_mutex_lock and their like, but not thrd_create and mtx_lock, which
 * librdkafka uses: its threads would be unknown to the sanitizer (which then crashes) and the order that its queues
 * give would be invisible. In glibc the types of the one are those of the other, and what the program defines comes
 * before what libc does.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

static_assert(sizeof(thrd_t) == sizeof(pthread_t), "a C11 thread is a POSIX thread");
static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "a C11 mutex is a POSIX mutex");
static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "a C11 condition is a POSIX condition");

struct start {
  thrd_start_t function;
  void *argument;
};

static int to_thrd(int error) {
  switch (error) {
    case 0: return thrd_success;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    case EBUSY: return thrd_busy;
    default: return thrd_error;
  }
}

static void *run(void *opaque) {
  struct start start = *(struct start *)opaque;
  free(opaque);
  return (void *)(intptr_t)start.function(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument) {
  struct start *start = malloc(sizeof(*start));
  if (!start) return thrd_nomem;
  *start = (struct start){ function, argument };
  int error = pthread_create(thread, NULL, run, start);
  if (error) free(start);
  return to_thrd(error);
}

int thrd_join(thrd_t thread, int *result) {
  void *returned = NULL;
  int error = pthread_join(thread, &returned);
  if (!error && result) *result = (int)(intptr_t)returned;
  return to_thrd(error);
}

int mtx_init(mtx_t *mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (type & mtx_recursive) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  int error = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return to_thrd(error);
}

void mtx_destroy(mtx_t *mutex) {
  pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int mtx_lock(mtx_t *mutex) {
  return to_thrd(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int mtx_trylock(mtx_t *mutex) {
  return to_thrd(pthread_mutex_trylock((pthread_mutex_t *)mutex));
}

int mtx_unlock(mtx_t *mutex) {
  return to_thrd(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

int cnd_init(cnd_t *condition) {
  return to_thrd(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

void cnd_destroy(cnd_t *condition) {
  pthread_cond_destroy((pthread_cond_t *)condition);
}

int cnd_signal(cnd_t *condition) {
  return to_thrd(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition) {
  return to_thrd(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex) {
  return to_thrd(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until) {
  return to_thrd(pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}
