/*
 * Limits how many requests are delayed at once in all children, because each occupies a thread or a
 * process. Each child counts its own in shared memory, which the parent process creates before it
 * forks. The count of a killed child is removed by the next child that starts or reaches the limit.
 */
#include "mod_dthrottle.h"

#include "ap_mpm.h"
#include "apr_atomic.h"
#include "apr_shm.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define KEY "mod_dthrottle:delayed"
/* By default, one in DEFAULT_SHARE of the requests that can be served at once may be delayed. */
#define DEFAULT_SHARE 4

typedef struct {
    volatile apr_uint32_t pid; /* 0 if the slot is free */
    volatile apr_uint32_t count;
} slot_t;

typedef struct {
    apr_uint32_t slots;
    slot_t slot[];
} delayed_t;

static delayed_t *delayed;
static slot_t *own_slot;
static apr_uint32_t max_delayed;

const char *dthrottle_cmd_max_delayed(cmd_parms *cmd, void *none, const char *text)
{
    const char *message = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    (void)none;
    return message ? message
                   : dthrottle_number(cmd, text, 0, 1000000, &dthrottle_server.max_delayed);
}

static int query_mpm(int what)
{
    int value = 1;
    return ap_mpm_query(what, &value) == APR_SUCCESS && value > 0 ? value : 1;
}

/* Runs in the parent process. The memory outlives a restart, as old children do. */
int dthrottle_post_config(apr_pool_t *config, apr_pool_t *log, apr_pool_t *temp, server_rec *s)
{
    apr_shm_t *memory = NULL;
    void *found = NULL;
    apr_size_t slots = 2 * (apr_size_t)query_mpm(AP_MPMQ_HARD_LIMIT_DAEMONS);
    apr_uint32_t all = (apr_uint32_t)query_mpm(AP_MPMQ_MAX_DAEMONS);
    (void)config;
    (void)log;
    (void)temp;
    all *= (apr_uint32_t)query_mpm(AP_MPMQ_MAX_THREADS);
    max_delayed = (all + DEFAULT_SHARE - 1) / DEFAULT_SHARE;
    if (dthrottle_server.max_delayed >= 0)
        max_delayed = (apr_uint32_t)dthrottle_server.max_delayed;
    if (!dthrottle_server.may_delay)
        return OK;
    apr_pool_userdata_get(&found, KEY, s->process->pool);
    delayed = found;
    if (delayed)
        return OK;
    if (apr_shm_create(&memory, sizeof *delayed + slots * sizeof(slot_t), NULL, s->process->pool) !=
        APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "dthrottle: cannot create memory to count "
                     "delayed requests; no request will be delayed");
        return OK;
    }
    delayed = apr_shm_baseaddr_get(memory);
    memset(delayed, 0, sizeof *delayed + slots * sizeof(slot_t));
    delayed->slots = (apr_uint32_t)slots;
    apr_pool_userdata_set(delayed, KEY, NULL, s->process->pool);
    return OK;
}

static int has_exited(apr_uint32_t pid)
{
    return pid == 0 || (kill((pid_t)pid, 0) == -1 && errno == ESRCH);
}

/* Claims a slot whose child has exited. No other child writes to it afterwards. */
static int claim(slot_t *slot)
{
    apr_uint32_t pid = apr_atomic_read32(&slot->pid);
    if (!has_exited(pid) || apr_atomic_cas32(&slot->pid, (apr_uint32_t)getpid(), pid) != pid)
        return 0;
    apr_atomic_set32(&slot->count, 0);
    return 1;
}

/* Claims a slot, preferably one whose child exited while it delayed requests. */
void dthrottle_init_delayed(void)
{
    own_slot = NULL;
    for (int any = 0; any <= 1; any++) {
        for (apr_uint32_t i = 0; delayed && i < delayed->slots && !own_slot; i++) {
            slot_t *slot = &delayed->slot[i];
            if ((any || apr_atomic_read32(&slot->count)) && claim(slot))
                own_slot = slot;
        }
    }
}

/* Frees the slots of exited children, because new children may not start for a long time. */
static void free_exited_slots(void)
{
    for (apr_uint32_t i = 0; i < delayed->slots; i++) {
        slot_t *slot = &delayed->slot[i];
        if (slot != own_slot && apr_atomic_read32(&slot->count) && claim(slot))
            apr_atomic_set32(&slot->pid, 0);
    }
}

static apr_uint64_t total(void)
{
    apr_uint64_t all = 0;
    for (apr_uint32_t i = 0; i < delayed->slots; i++)
        all += apr_atomic_read32(&delayed->slot[i].count);
    return all;
}

/* Counts one more delayed request. Returns 0 if the limit is reached. */
int dthrottle_begin_delay(void)
{
    if (!own_slot)
        return 0;
    apr_atomic_inc32(&own_slot->count);
    if (total() <= max_delayed)
        return 1;
    free_exited_slots();
    if (total() <= max_delayed)
        return 1;
    dthrottle_end_delay();
    return 0;
}

void dthrottle_end_delay(void)
{
    apr_atomic_dec32(&own_slot->count);
}
