/* SPDX-License-Identifier: Apache-2.0 */
/* A list of threads, which each thread enters and leaves by itself. */
#include "ingest/kafka/kafka_threads.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

static void set_policy(pid_t thread, int policy)
{
  struct sched_param param = { 0 };

  sched_setscheduler(thread, policy, &param);
}

void kafka_threads_init(struct kafka_threads *out)
{
  *out = (struct kafka_threads){ .policy = sched_getscheduler(0) };
  pthread_mutex_init(&out->lock, NULL);
}

void kafka_threads_fini(struct kafka_threads *t)
{
  pthread_mutex_destroy(&t->lock);
}

/* Return where the calling thread is in the list; t->n: nowhere. */
static size_t find(const struct kafka_threads *t)
{
  size_t i = 0;

  while (i < t->n && t->ids[i] != gettid())
    i++;
  return i;
}

int kafka_threads_open_socket(struct kafka_threads *t, int domain, int type, int protocol)
{
  pthread_mutex_lock(&t->lock);
  if (find(t) == t->n && t->n < KAFKA_THREADS_MAX) {
    t->ids[t->n++] = gettid();
    set_policy(0, t->stands_back ? SCHED_IDLE : t->policy); /* it may have that of the thread that started it */
  }
  pthread_mutex_unlock(&t->lock);
  return socket(domain, type | SOCK_CLOEXEC, protocol);
}

int kafka_threads_close_socket(struct kafka_threads *t, int socket)
{
  pthread_mutex_lock(&t->lock);
  size_t i = find(t);
  if (i < t->n) {
    t->ids[i] = t->ids[--t->n];
    set_policy(0, t->policy);
  }
  pthread_mutex_unlock(&t->lock);
  return close(socket);
}

void kafka_threads_stand_back(struct kafka_threads *t, bool stands_back)
{
  pthread_mutex_lock(&t->lock);
  for (size_t i = 0; i < t->n && stands_back != t->stands_back; i++)
    set_policy(t->ids[i], stands_back ? SCHED_IDLE : t->policy);
  t->stands_back = stands_back;
  pthread_mutex_unlock(&t->lock);
}
