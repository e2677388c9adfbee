/* SPDX-License-Identifier: Apache-2.0 */
/* The usual sizes. Tests have others. */
#include "engine/recjpq/recjpq_rule.h"

const struct recjpq_rule recjpq_rule_usual = {
  .warm_up_items_min = 1 << 17,
  .scan_items_max = 1 << 18,
  .slots_per_cell = RECJPQ_BY_KERNELS,
  .guess_k_min = 160,
  .guess_items_per_hit = 64,
  .guess_deviations = 4,
  .list_k_min = 256,
};
