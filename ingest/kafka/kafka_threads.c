/* SPDX-License-Identifier: Apache-2.0 */
/* A list of threads, kept by librdkafka's interceptors. */
#include "ingest/kafka/kafka_threads.h"

#include <sched.h>
#include <unistd.h>

static const char name[] = "threads";

static void set_policy(pid_t thread, int policy)
{
  struct sched_param param = { 0 };

  sched_setscheduler(thread, policy, &param);
}

static rd_kafka_resp_err_t on_start(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *thread, void *context)
{
  struct kafka_threads *t = context;

  (void)rk, (void)type, (void)thread;
  pthread_mutex_lock(&t->lock);
  bool is_listed = t->n < KAFKA_THREADS_MAX;
  if (is_listed)
    t->ids[t->n++] = gettid();
  set_policy(0, is_listed && t->stands_back ? SCHED_IDLE : t->policy); /* it has that of the one that started it */
  pthread_mutex_unlock(&t->lock);
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_exit(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *thread, void *context)
{
  struct kafka_threads *t = context;
  size_t i = 0;

  (void)rk, (void)type, (void)thread;
  pthread_mutex_lock(&t->lock);
  while (i < t->n && t->ids[i] != gettid())
    i++;
  if (i < t->n)
    t->ids[i] = t->ids[--t->n];
  pthread_mutex_unlock(&t->lock);
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Called before the client's threads are started. */
static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *context, char *reason, size_t n)
{
  (void)conf, (void)reason, (void)n;
  rd_kafka_resp_err_t error = rd_kafka_interceptor_add_on_thread_start(rk, name, on_start, context);

  return error ? error : rd_kafka_interceptor_add_on_thread_exit(rk, name, on_exit, context);
}

/* Adding fails only if the name is taken. */
void kafka_threads_watch(rd_kafka_conf_t *conf, struct kafka_threads *out)
{
  *out = (struct kafka_threads){ .policy = sched_getscheduler(0) };
  pthread_mutex_init(&out->lock, NULL);
  rd_kafka_conf_interceptor_add_on_new(conf, name, on_new, out);
}

void kafka_threads_fini(struct kafka_threads *t)
{
  pthread_mutex_destroy(&t->lock);
}

void kafka_threads_stand_back(struct kafka_threads *t, bool stands_back)
{
  pthread_mutex_lock(&t->lock);
  for (size_t i = 0; i < t->n && stands_back != t->stands_back; i++)
    set_policy(t->ids[i], stands_back ? SCHED_IDLE : t->policy);
  t->stands_back = stands_back;
  pthread_mutex_unlock(&t->lock);
}
