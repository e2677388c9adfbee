/* SPDX-License-Identifier: Apache-2.0 */
/* What happens if a mapped file cannot be read, of the store or of a model: it was cut, or the disk fails. The system
 * then ends the process with SIGBUS, which alone tells nobody why. */
#ifndef BASE_MAPPED_READ_H
#define BASE_MAPPED_READ_H

/* From now on, say why on stderr, and end the process with this status.
 *
 * status  of the process
 */
void mapped_read_explain(int status);

#endif
