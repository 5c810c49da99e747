/* Threads that walk a program together and meet after each record. */
#ifndef HEDGEROW_CREW_H
#define HEDGEROW_CREW_H

#include <stdbool.h>

typedef struct hedgerow_meeting hedgerow_meeting;
typedef void (*hedgerow_work)(void *work, hedgerow_meeting *meeting, int member, int members);

/* Let so many threads, the caller among them, do some work at once; false if they cannot be had. */
bool hedgerow_together(hedgerow_work work, void *argument, int members);

/* Wait until every member is here. */
void hedgerow_meet(hedgerow_meeting *meeting);

#endif
