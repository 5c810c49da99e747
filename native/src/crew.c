/* Members of the crew are started once and sleep between programs. Within one they wait for each other with their eyes
 * open, because records are short; but only briefly, because a member that has lost its processor to somebody else's
 * work needs one to catch up.
 */
#include "crew.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "hedgerow.h"

struct hedgerow_meeting {
    int members;
    _Alignas(64) _Atomic uint64_t arrived; /* of all members, since the work began */
};

enum { LOOKS_BEFORE_YIELDING = 4000, LOOKS_BEFORE_SLEEPING = 40000 };

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool started;
    _Alignas(64) _Atomic uint64_t turn; /* grows with each work it is called for */
    _Atomic uint64_t finished;
} member;

static struct {
    member members[HEDGEROW_PARTS]; /* the first is whoever calls */
    hedgerow_work work;
    void *argument;
    hedgerow_meeting meeting;
} crew;

static void look_again(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void wait_until(_Atomic uint64_t *count, uint64_t wanted) {
    for (int looks = 0; atomic_load_explicit(count, memory_order_acquire) < wanted; looks++) {
        if (looks < LOOKS_BEFORE_YIELDING)
            look_again();
        else
            sched_yield();
    }
}

void hedgerow_meet(hedgerow_meeting *meeting) {
    uint64_t members = (uint64_t)meeting->members;
    uint64_t before = atomic_fetch_add_explicit(&meeting->arrived, 1, memory_order_acq_rel);
    wait_until(&meeting->arrived, (before / members + 1) * members);
}

static void wait_for_turn(member *self, uint64_t turn) {
    for (int looks = 0; looks < LOOKS_BEFORE_SLEEPING; looks++) {
        if (atomic_load_explicit(&self->turn, memory_order_acquire) == turn)
            return;
        look_again();
    }
    pthread_mutex_lock(&self->lock);
    while (atomic_load_explicit(&self->turn, memory_order_acquire) != turn)
        pthread_cond_wait(&self->woken, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

static void *serve(void *number) {
    int own = (int)(intptr_t)number;
    member *self = &crew.members[own];
    for (uint64_t turn = 1;; turn++) {
        wait_for_turn(self, turn);
        crew.work(crew.argument, &crew.meeting, own, crew.meeting.members);
        atomic_store_explicit(&self->finished, turn, memory_order_release);
    }
    return NULL;
}

static bool start(int number) {
    member *one = &crew.members[number];
    pthread_t thread;
    if (one->started)
        return true;
    pthread_mutex_init(&one->lock, NULL);
    pthread_cond_init(&one->woken, NULL);
    if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)number) != 0)
        return false;
    pthread_detach(thread);
    one->started = true;
    return true;
}

static void call(member *one) {
    pthread_mutex_lock(&one->lock);
    atomic_fetch_add_explicit(&one->turn, 1, memory_order_release);
    pthread_cond_signal(&one->woken);
    pthread_mutex_unlock(&one->lock);
}

bool hedgerow_together(hedgerow_work work, void *argument, int members) {
    for (int number = 1; number < members; number++)
        if (!start(number))
            return false;
    crew.work = work;
    crew.argument = argument;
    crew.meeting.members = members;
    atomic_store(&crew.meeting.arrived, 0);
    for (int number = 1; number < members; number++)
        call(&crew.members[number]);
    work(argument, &crew.meeting, 0, members);
    for (int number = 1; number < members; number++)
        wait_until(&crew.members[number].finished, atomic_load(&crew.members[number].turn));
    return true;
}
