/* SPDX-License-Identifier: Apache-2.0 */
/* Converting stores of schema 2. They are stores of this schema without attributes. Only their number is raised: the
 * version that wrote them would take a record with attributes for a damaged one. */
#include "store/store_private.h"

err_code_t store_convert_schema_2(void *context, MDB_txn *txn)
{
  struct store *s = context;

  return meta_put_schema(s->env, txn, s->meta_table);
}
