/* SPDX-License-Identifier: Apache-2.0 */
/* The settings below `catalogue` that say where schemas are. */
#include "daemon/config/config_schemas.h"

struct avro_sources config_schemas(const struct config *c)
{
  return (struct avro_sources){
    .has_ids = c->catalogue.is_framed,
    .path = c->catalogue.schemas,
    .registry = { .url = c->catalogue.registry.url,
                  .user = c->catalogue.registry.user,
                  .password = c->catalogue.registry.password,
                  .ca_file = c->catalogue.registry.ca_file },
  };
}
