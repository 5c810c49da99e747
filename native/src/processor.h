#ifndef HEDGEROW_PROCESSOR_H
#define HEDGEROW_PROCESSOR_H

#include <stdbool.h>

/* Whether this processor, and the system on it, have what the second table of kernels was compiled for. */
bool hedgerow_has_richer_set(void);

#endif
