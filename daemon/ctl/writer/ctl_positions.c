/* SPDX-License-Identifier: Apache-2.0 */
/* Compare the offsets that were written with the daemon's watermark. */
#include "daemon/ctl/writer/ctl_positions.h"

#include "base/mem.h"

void ctl_positions_fini(struct ctl_positions *p)
{
  mem_free(&p->items);
  *p = (struct ctl_positions){ 0 };
}

err_t ctl_positions_add(struct ctl_positions *p, int32_t partition, int64_t offset)
{
  size_t i = 0;

  while (i < p->n && p->items[i].partition != partition)
    i++;
  if (i == p->n) {
    TRY(mem_grow(p->n + 1, sizeof *p->items, &p->capacity, &p->items));
    p->items[p->n++] = (struct position){ .partition = partition };
  }
  if (offset + 1 > p->items[i].next)
    p->items[i].next = offset + 1;
  return ERR_OK;
}

static int64_t next_of(const json_t *watermark, int32_t partition)
{
  size_t i;
  json_t *position;

  json_array_foreach(watermark, i, position)
  {
    if (json_integer_value(json_object_get(position, "partition")) == partition)
      return json_integer_value(json_object_get(position, "next"));
  }
  return 0;
}

uint64_t ctl_positions_behind(const struct ctl_positions *p, const json_t *watermark)
{
  uint64_t behind = 0;

  for (size_t i = 0; i < p->n; i++) {
    int64_t next = next_of(watermark, p->items[i].partition);
    if (next < p->items[i].next)
      behind += (uint64_t)(p->items[i].next - next);
  }
  return behind;
}
