/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl model add. Thread: one. */
#ifndef DAEMON_CTL_CTL_MODEL_ADD_H
#define DAEMON_CTL_CTL_MODEL_ADD_H

#include "daemon/ctl/model/ctl_model_request.h"

/* Add a generation of a model, and wait until the daemons have loaded it. */
err_t ctl_model_add(struct ctl_model_request *r);

#endif
