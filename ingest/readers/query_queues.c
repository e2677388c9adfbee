/* SPDX-License-Identifier: Apache-2.0 */
/* The queues write to an event file descriptor when they get something. */
#include "ingest/readers/query_queues.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

err_t query_queues_open(rd_kafka_t *rk, struct query_queues *out)
{
  static const uint64_t one = 1;

  out->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (out->wake_fd < 0)
    FAIL(ERR_SYSTEM, "eventfd: %s", strerror(errno));
  out->events = rd_kafka_queue_get_consumer(rk);
  out->records = rd_kafka_queue_new(rk);
  rd_kafka_queue_io_event_enable(out->events, out->wake_fd, &one, sizeof one);
  rd_kafka_queue_io_event_enable(out->records, out->wake_fd, &one, sizeof one);
  return ERR_OK;
}

static void close_queue(rd_kafka_queue_t *queue)
{
  rd_kafka_queue_io_event_enable(queue, -1, NULL, 0);
  rd_kafka_queue_destroy(queue);
}

void query_queues_close(struct query_queues *q)
{
  if (!q->events)
    return;
  close_queue(q->records);
  close_queue(q->events);
  close(q->wake_fd);
  *q = (struct query_queues){ 0 };
}

void query_queues_wait(struct query_queues *q, int64_t wait_ns)
{
  struct pollfd fd = { .fd = q->wake_fd, .events = POLLIN };
  uint64_t n;

  if (poll(&fd, 1, (int)((wait_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS)) > 0)
    (void)!read(q->wake_fd, &n, sizeof n); /* cleared before the queues are checked, so later arrivals wake again */
}
