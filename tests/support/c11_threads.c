/* SPDX-License-Identifier: Apache-2.0 */
/* C11 threads on POSIX threads, for builds with the thread sanitizer. The sanitizer knows only POSIX threads;
 * librdkafka uses C11 threads. Linked into every program of such a build, in front of the C library's functions.
 * cnd_timedwait() is in ingest/kafka/kafka_waits.c. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

static int result_of(int error)
{
  return error == 0           ? thrd_success
         : error == ENOMEM    ? thrd_nomem
         : error == EBUSY     ? thrd_busy
         : error == ETIMEDOUT ? thrd_timedout
                              : thrd_error;
}

struct start {
  thrd_start_t function;
  void *argument;
};

static void *run(void *argument)
{
  struct start start = *(struct start *)argument;

  free(argument);
  return (void *)(intptr_t)start.function(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
  struct start *start = malloc(sizeof *start);

  if (!start)
    return thrd_nomem;
  *start = (struct start){ function, argument };
  int error = pthread_create(thread, NULL, run, start);
  if (error)
    free(start);
  return result_of(error);
}

int thrd_join(thrd_t thread, int *result)
{
  void *value = NULL;
  int error = pthread_join(thread, &value);

  if (result)
    *result = (int)(intptr_t)value;
  return result_of(error);
}

int thrd_detach(thrd_t thread)
{
  return result_of(pthread_detach(thread));
}

int mtx_init(mtx_t *mutex, int type)
{
  pthread_mutexattr_t attributes;

  pthread_mutexattr_init(&attributes);
  if (type & mtx_recursive)
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  int error = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return result_of(error);
}

void mtx_destroy(mtx_t *mutex)
{
  pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int mtx_lock(mtx_t *mutex)
{
  return result_of(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int mtx_trylock(mtx_t *mutex)
{
  return result_of(pthread_mutex_trylock((pthread_mutex_t *)mutex));
}

int mtx_unlock(mtx_t *mutex)
{
  return result_of(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

int cnd_init(cnd_t *condition)
{
  return result_of(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

void cnd_destroy(cnd_t *condition)
{
  pthread_cond_destroy((pthread_cond_t *)condition);
}

int cnd_signal(cnd_t *condition)
{
  return result_of(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition)
{
  return result_of(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
  return result_of(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}
