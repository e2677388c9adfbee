/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl model shadow. Thread: one. */
#ifndef DAEMON_CTL_CTL_MODEL_SHADOW_H
#define DAEMON_CTL_CTL_MODEL_SHADOW_H

#include "daemon/ctl/model/ctl_model_request.h"

/* Compare a generation with the current one for a share of the queries. */
err_t ctl_model_shadow(struct ctl_model_request *r);

#endif
