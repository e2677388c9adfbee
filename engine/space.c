#include "engine/space.h"

#include "base/mem.h"

err_t space_init(const char *name, const char *model_path, struct space *out)
{
  AUTO(safetensors_close) struct safetensors *file = NULL;

  *out = (struct space){ 0 };
  TRY(mem_copy_str(name, &out->name));
  TRY(safetensors_open(model_path, &file));
  TRY(similarity_of(file, &out->similarity));
  return out->similarity->model_open(file, &out->model);
}

void space_fini(struct space *s)
{
  if (s->model)
    s->similarity->model_close(&s->model);
  mem_free(&s->name);
}
