#include "engine/cuda/funnel.h"
#include "engine/vector_model.h"

static struct device_layout layout(const void *model)
{
  (void)model;
  return (struct device_layout){ .row_bytes = 4 };
}

static err_t search(const struct device_columns *c, struct search_batch *batch)
{
  (void)c;
  (void)batch;
  FAIL(ERR_DEVICE, "not written yet");
}

static const struct device_columns_ops vector_ops = { .layout = layout, .search = search };

DEVICE_COLUMNS(vector_columns_cuda, vector_ops);
