/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of attributes: find one by its name, copy a list, and the names of their types. Thread: any. */
#ifndef BASE_ATTRIBUTES_H
#define BASE_ATTRIBUTES_H

#include "base/err.h"
#include "base/value.h"

/* Stands for an attribute that the list does not have. */
#define ATTRIBUTE_NONE SIZE_MAX

/* Return the index of an attribute, or ATTRIBUTE_NONE.
 *
 * hint  the index to look at first, such as the one after the attribute that was found before; any number */
size_t attributes_find(const struct attributes *attributes, struct span name, size_t hint);

/* Return the name of the list that is most like another one, which was probably meant. The list is not empty. */
struct span attributes_nearest(const struct attributes *attributes, struct span name);

/* Get the index of the attribute that a query names. Returns ERR_QUERY with the nearest name if there is none. */
err_t attributes_get(const struct attributes *attributes, struct span name, size_t *out);

/* Copy a list and its names. The caller frees it with attributes_free(). Returns ERR_MEMORY. */
err_t attributes_copy(const struct attributes *from, struct attributes *out);
void attributes_free(struct attributes *attributes);

/* Return the name of a type in the configuration: "bool", "keyword", "keywords", "integer", "number" or "time". */
const char *attribute_type_name(enum attribute_type type);

/* Find a type by its name. Returns false if there is none. */
bool attribute_type_find(struct span name, enum attribute_type *out);

/* Can an attribute have this name? See ATTRIBUTE_NAME_MAX. */
bool attribute_name_is_valid(struct span name);

#endif
