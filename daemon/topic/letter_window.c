/* SPDX-License-Identifier: Apache-2.0 */
/* Open dead letters, in a ring in the order of sending. They may settle in any order. */
#include "daemon/topic/letter_window.h"

#include "base/mem.h"
#include "daemon/delivery/record_letter.h"
#include "daemon/topic/topic_position.h"

static struct open_letter *letter_at(const struct letter_window *w, size_t i)
{
  return &w->letters[(w->first + i) % LETTER_WINDOW_MAX];
}

err_t letter_window_init(struct letter_window *w)
{
  *w = (struct letter_window){ 0 };
  return mem_array(LETTER_WINDOW_MAX, sizeof *w->letters, &w->letters);
}

void letter_window_fini(struct letter_window *w)
{
  mem_free(&w->letters);
}

struct open_letter *letter_window_push(struct letter_window *w, const struct store_position *before)
{
  if (w->n == LETTER_WINDOW_MAX)
    return NULL;
  struct open_letter *letter = letter_at(w, w->n++);
  letter->before = *before;
  letter->is_forgotten = false;
  atomic_store(&letter->is_settled, false);
  return letter;
}

void letter_window_pop(struct letter_window *w)
{
  w->n--;
}

bool letter_window_settle(struct letter_window *w)
{
  bool has_settled = false;

  while (w->n > 0 && atomic_load(&letter_at(w, 0)->is_settled)) {
    w->first = (w->first + 1) % LETTER_WINDOW_MAX;
    w->n--;
    has_settled = true;
  }
  return has_settled;
}

/* Many may be sent at once: make room as they are delivered. */
static struct open_letter *open_letter(struct letter_window *w, const struct store_position *before)
{
  struct open_letter *open = letter_window_push(w, before);

  if (!open && letter_window_settle(w))
    open = letter_window_push(w, before);
  return open;
}

bool letter_window_send(struct letter_window *w, struct delivery *delivery, const char *topic,
                        const struct topic_record *record, const char *source_topic, err_code_t err)
{
  struct store_position before = topic_position_before(record);
  struct dead_letter letter = record_letter_of(record, topic, source_topic, err);
  struct open_letter *open = open_letter(w, &before);

  if (!open)
    return false;
  letter.waiter = DEAD_LETTER_WAITER_CATALOGUE;
  letter.is_settled = &open->is_settled;
  if (delivery_send_dead_letter(delivery, &letter))
    return true;
  letter_window_pop(w);
  return false;
}

const struct store_position *letter_window_hold(const struct letter_window *w, int32_t partition)
{
  for (size_t i = 0; i < w->n; i++) {
    const struct open_letter *letter = letter_at(w, i);
    if (letter->before.at.partition == partition && !letter->is_forgotten && !atomic_load(&letter->is_settled))
      return &letter->before;
  }
  return NULL;
}

void letter_window_forget(struct letter_window *w)
{
  for (size_t i = 0; i < w->n; i++)
    letter_at(w, i)->is_forgotten = true;
}
