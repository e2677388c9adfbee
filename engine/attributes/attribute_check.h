/* SPDX-License-Identifier: Apache-2.0 */
/* Checking a value against the type of its attribute. Thread: any. */
#ifndef ENGINE_ATTRIBUTES_ATTRIBUTE_CHECK_H
#define ENGINE_ATTRIBUTES_ATTRIBUTE_CHECK_H

#include "base/err.h"
#include "base/region.h"
#include "base/value.h"

/* Verify a value, and bring it to its kept form (enum attribute_type): an integer becomes a number for `number`, -0
 * becomes 0, a set is sorted and has each text once. VALUE_NULL stays.
 *
 * region  memory for a sorted set
 *
 * Returns ERR_ITEM, with the attribute, what was expected and the value; ERR_MEMORY. On error the value is unchanged.
 */
err_t attribute_normalize(const struct attribute *attribute, struct region *region, struct value *value);

#endif
