/* Whoever calls leads: it puts a task on the board and takes its parts one after the other, and helpers take what is
 * left. So a helper that has no processor delays nothing, unless it loses it in the middle of a part. The leader cannot
 * take such a part back; it waits, and then does without help for ten times as long, so that neighbours who want the
 * processors cost it at most a tenth. Bits do not depend on who does a part.
 *
 * Helpers are started once. They watch the board with open eyes, because tasks are short, and sleep when nothing
 * happens for a while.
 */
#define _POSIX_C_SOURCE 200809L

#include "crew.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "hedgerow.h"

enum {
    LOOKS_BETWEEN_CLOCKS = 256,
    WATCH_NANOSECONDS = 1000 * 1000,  /* how long a helper watches before it sleeps */
    STALL_NANOSECONDS = 200 * 1000,   /* shorter waits are tasks that were cut unevenly */
    ALONE_FOR_STALLS = 10,
};

/* A task, how many of its parts are taken, and how many there are: in one word, so that a part is taken at one go. */
typedef uint64_t notice;
static notice notice_of(int64_t task, int taken, int parts) {
    return (uint64_t)task << 16 | (uint64_t)taken << 8 | (uint64_t)parts;
}
static int64_t task_of(notice read) { return (int64_t)(read >> 16); }
static int taken_of(notice read) { return (int)(read >> 8 & 0xff); }
static int parts_of(notice read) { return (int)(read & 0xff); }

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool started;
    _Atomic bool sleeping;
} helper;

static struct {
    helper helpers[HEDGEROW_PARTS - 1];
    const hedgerow_tasks *tasks;
    int64_t alone_until; /* nanoseconds of the clock */
    atomic_flag led;
    _Alignas(64) _Atomic notice board;
    _Alignas(64) _Atomic int helped; /* parts of the task on the board that helpers have done */
} crew = {.led = ATOMIC_FLAG_INIT};

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void look_again(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Take a part of the task on the board, if one is left. */
static bool take_part(notice *taken) {
    notice read = atomic_load_explicit(&crew.board, memory_order_acquire);
    while (taken_of(read) < parts_of(read)) {
        notice next = notice_of(task_of(read), taken_of(read) + 1, parts_of(read));
        if (atomic_compare_exchange_weak_explicit(&crew.board, &read, next, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            *taken = read;
            return true;
        }
    }
    return false;
}

static bool is_part_left(void) {
    notice read = atomic_load(&crew.board);
    return taken_of(read) < parts_of(read);
}

static void watch(void) {
    int64_t until = now() + WATCH_NANOSECONDS;
    for (int looks = 0; !is_part_left(); looks++) {
        if (looks % LOOKS_BETWEEN_CLOCKS == 0 && now() > until)
            return;
        look_again();
    }
}

static void sleep_until_woken(helper *self) {
    pthread_mutex_lock(&self->lock);
    atomic_store(&self->sleeping, true);
    while (!is_part_left())
        pthread_cond_wait(&self->woken, &self->lock);
    atomic_store(&self->sleeping, false);
    pthread_mutex_unlock(&self->lock);
}

static void *help(void *own) {
    for (notice taken;;) {
        while (take_part(&taken)) {
            crew.tasks->run(crew.tasks->work, task_of(taken), taken_of(taken));
            atomic_fetch_add_explicit(&crew.helped, 1, memory_order_release);
        }
        watch();
        if (!is_part_left())
            sleep_until_woken(own);
    }
    return NULL;
}

static bool start(helper *one) {
    pthread_t thread;
    if (one->started)
        return true;
    pthread_mutex_init(&one->lock, NULL);
    pthread_cond_init(&one->woken, NULL);
    if (pthread_create(&thread, NULL, help, one) != 0)
        return false;
    pthread_detach(thread);
    one->started = true;
    return true;
}

static void wake(helper *one) {
    if (!atomic_load(&one->sleeping))
        return;
    pthread_mutex_lock(&one->lock);
    pthread_cond_signal(&one->woken);
    pthread_mutex_unlock(&one->lock);
}

/* Wait for the parts that helpers took, and remember if that was not worth it. */
static void wait_for_helpers(int parts, int64_t began) {
    if (atomic_load_explicit(&crew.helped, memory_order_acquire) == parts)
        return;
    int64_t done = now();
    for (int looks = 1; atomic_load_explicit(&crew.helped, memory_order_acquire) != parts; looks++) {
        look_again();
        if (looks % LOOKS_BETWEEN_CLOCKS == 0 && now() - done > STALL_NANOSECONDS)
            sched_yield();
    }
    int64_t waited = now() - done;
    if (waited > STALL_NANOSECONDS && waited > done - began)
        crew.alone_until = done + waited + ALONE_FOR_STALLS * waited;
}

static void lead_task(const hedgerow_tasks *tasks, int64_t task, int parts, int helpers) {
    int64_t began = now();
    if (began < crew.alone_until)
        helpers = 0;
    if (parts == 1 || helpers == 0) {
        for (int part = 0; part < parts; part++)
            tasks->run(tasks->work, task, part);
        return;
    }
    atomic_store_explicit(&crew.helped, 0, memory_order_relaxed);
    atomic_store(&crew.board, notice_of(task, 1, parts));
    for (int number = 0; number < helpers; number++)
        wake(&crew.helpers[number]);
    tasks->run(tasks->work, task, 0);
    int own = 1;
    for (notice taken; take_part(&taken); own++)
        tasks->run(tasks->work, task, taken_of(taken));
    wait_for_helpers(parts - own, began);
}

bool hedgerow_together(const hedgerow_tasks *tasks, int members) {
    if (atomic_flag_test_and_set(&crew.led))
        return false;
    int helpers = 0;
    while (helpers < members - 1 && start(&crew.helpers[helpers]))
        helpers++;
    if (helpers > 0) {
        crew.tasks = tasks;
        for (int64_t task = 0; task < tasks->count; task++)
            lead_task(tasks, task, tasks->parts(tasks->work, task), helpers);
    }
    atomic_flag_clear(&crew.led);
    return helpers > 0;
}
