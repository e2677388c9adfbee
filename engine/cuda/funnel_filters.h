/* SPDX-License-Identifier: Apache-2.0 */
/* The filters of a search on the device (funnel.h): words that the host has made, or programs that make them there. */
#ifndef ENGINE_CUDA_FUNNEL_FILTERS_H
#define ENGINE_CUDA_FUNNEL_FILTERS_H

#include "engine/cuda/funnel.h"
#include "engine/search/search_batch.h"

/* How many different filters that leave items out the batch's queries have. */
size_t funnel_n_filters(const struct search_batch *batch);

/* The most input bytes of a query's program. */
size_t funnel_filter_bytes(const struct search_batch *batch);

/* Set the group's admitted, words and programs. Words are on their way when this returns; programs are inputs that the
 * caller sends and then runs. Returns ERR_DEVICE or ERR_MEMORY. */
err_t funnel_upload_filters(const struct funnel *f, struct funnel_group *group);

/* Note how many items the made words admit. The group's outputs have been received. */
void funnel_count_admitted(const struct funnel *f, const struct funnel_group *group);

#endif
