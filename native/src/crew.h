/* Threads that share the parts of tasks. */
#ifndef HEDGEROW_CREW_H
#define HEDGEROW_CREW_H

#include <stdbool.h>
#include <stdint.h>

/* Tasks to be done one after the other; the parts of one may be done at once, by whichever thread. */
typedef struct {
    int64_t count;
    const void *work;
    int (*parts)(const void *work, int64_t task);
    void (*run)(const void *work, int64_t task, int part);
} hedgerow_tasks;

/* Do tasks on the calling thread, with the help of so many others less one; false, with nothing done, if there are
 * none to be had. */
bool hedgerow_together(const hedgerow_tasks *tasks, int members);

#endif
