/* SPDX-License-Identifier: Apache-2.0 */
/* Find who asks the schema registry in a configuration, and let the open client know. */
#include "daemon/reload/registry_login.h"

#include <string.h>

#include "daemon/config/config_schemas.h"
#include "daemon/reload/digest.h"

static const char *const settings[] = { "catalogue.registry.user", "catalogue.registry.password",
                                        "catalogue.registry.ca_file" };

bool registry_login_has(const char *setting)
{
  bool has = false;

  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
    has |= strcmp(setting, settings[i]) == 0;
  return has;
}

uint64_t registry_login_digest(const struct config *c)
{
  const struct schema_registry_access access = config_schemas(c).registry;
  uint64_t digest = digest_text(digest_text(0, access.user), access.password);

  return digest_file(digest_text(digest, access.ca_file), access.ca_file);
}

bool registry_login_can_change(const struct config *running, const struct config *newer)
{
  const char *url = config_schemas(running).registry.url;

  return *url && strcmp(url, config_schemas(newer).registry.url) == 0;
}

err_t registry_login_change(const struct config *newer)
{
  const struct schema_registry_access access = config_schemas(newer).registry;

  return schema_registry_renew(&access);
}
