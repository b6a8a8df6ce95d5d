/*
 * Tests that a check allocates no memory, neither for a known tag nor for a new one.
 */
#include "check.h"

/* The allocation functions of glibc, which our replacements call. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static unsigned long allocations;

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    allocations++;
    *out = __libc_memalign(alignment, size);
    return *out == NULL;
}

int main(void)
{
    dthrottle_t *throttle = open_on("rules = [{rate = \"100/s\"}, {rate = \"9/hour\"}]", NULL);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;
    const void *tags[] = {"t", "u"};
    const size_t lens[] = {1, 1};
    bool allowed[2];

    /* Opening a throttle allocates, so this tests the counter. */
    CHECK(allocations > 0);
    /* The first checks of a process may read the properties of the clock. */
    for (int i = 0; i < 100; i++)
        OK(dthrottle_check(domain, "warm", 4, 1, &decision));

    int refused = 0;
    unsigned long before = allocations;
    options.partial = true;
    options.max_delay_ns = 1;
    for (int i = 0; i < 20; i++) {
        dthrottle_check(domain, "t", 1, 1, &decision);
        refused += !decision.allowed;
        dthrottle_check_with(domain, "t", 1, &options, &decision);
        dthrottle_peek(domain, "t", 1, 1, &decision);
        dthrottle_peek_with(domain, "t", 1, &options, &decision);
        dthrottle_allow(domain, "t", 1, 1);
        dthrottle_allow_many(domain, tags, lens, 2, allowed);
        dthrottle_refund(domain, "t", 1, 1);
        dthrottle_charge_local(domain, "t", 1, 1, 1);
        dthrottle_reset(domain, i == 10 ? "t" : "u", 1);
        dthrottle_check(domain, &i, sizeof i, 1, &decision);
    }
    EQUAL(allocations, before);
    CHECK(refused > 0 && refused < 20);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    return check_report("allocation");
}
