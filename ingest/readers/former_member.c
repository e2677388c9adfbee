/* SPDX-License-Identifier: Apache-2.0 */
/* Ask the group for its members, until one is gone or must be. */
#include "ingest/readers/former_member.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum { LOOK_INTERVAL_MS = 200, LOOK_TIMEOUT_MS = 500, MARGIN_MS = 1000 };

static int session_timeout_ms(rd_kafka_t *rk)
{
  char text[24];
  size_t n = sizeof text;

  return rd_kafka_conf_get(rd_kafka_conf(rk), "session.timeout.ms", text, &n) == RD_KAFKA_CONF_OK ? atoi(text) : 0;
}

void former_member_begin(struct former_member *f, const char *id, rd_kafka_t *rk)
{
  if (!*id || strlen(id) > QUERY_MEMBER_MAX)
    return;
  strcpy(f->id, id);
  f->until_ns = clock_now_ns() + (session_timeout_ms(rk) + MARGIN_MS) * CLOCK_NS_PER_MS;
  f->due_ns = 0;
}

static bool has_member(const struct rd_kafka_group_list *groups, const char *id)
{
  for (int i = 0; i < groups->group_cnt; i++) {
    for (int j = 0; j < groups->groups[i].member_cnt; j++) {
      if (strcmp(groups->groups[i].members[j].member_id, id) == 0)
        return true;
    }
  }
  return false;
}

/* Can another look succeed after this error? */
static bool is_passing(rd_kafka_resp_err_t error)
{
  return error == RD_KAFKA_RESP_ERR__TIMED_OUT || error == RD_KAFKA_RESP_ERR__TRANSPORT ||
         error == RD_KAFKA_RESP_ERR__PARTIAL;
}

static bool look(const struct former_member *f, rd_kafka_t *rk, const char *group)
{
  const struct rd_kafka_group_list *groups;
  rd_kafka_resp_err_t error = rd_kafka_list_groups(rk, group, &groups, LOOK_TIMEOUT_MS);

  if (error && error != RD_KAFKA_RESP_ERR__PARTIAL)
    return is_passing(error);
  bool is_there = has_member(groups, f->id) || is_passing(error);
  rd_kafka_group_list_destroy(groups);
  return is_there;
}

bool former_member_is_there(struct former_member *f, rd_kafka_t *rk, const char *group, int64_t now_ns)
{
  if (!*f->id)
    return false;
  if (now_ns < f->due_ns)
    return true;
  f->due_ns = now_ns + LOOK_INTERVAL_MS * CLOCK_NS_PER_MS;
  if (now_ns < f->until_ns && look(f, rk, group))
    return true;
  log_info("query_member_forgotten", "group=%s member=%s", log_quote(span_of_str(group)), f->id);
  f->id[0] = '\0';
  return false;
}
