/*
 * Loads and unloads the library many times, as a server does with its modules. The library must
 * stay in memory, so that its code and static strings remain valid.  load LIBRARY
 */
#include "check.h"

#include <dlfcn.h>

typedef const char *(*version_function)(void);
typedef int32_t (*open_function)(const char *, size_t, dthrottle_t **, char *, size_t);
typedef int32_t (*domain_function)(const dthrottle_t *, const char *, size_t,
                                   dthrottle_domain_t **);
typedef int32_t (*allow_function)(const dthrottle_domain_t *, const void *, size_t, uint64_t);
typedef void (*close_function)(dthrottle_t *);
typedef void (*free_function)(dthrottle_domain_t *);

/* ISO C cannot convert a pointer to data to a pointer to a function. */
#define FIND(function, library, name) \
    do { \
        void *found = dlsym(library, name); \
        MUST(found != NULL); \
        memcpy(&(function), &found, sizeof(function)); \
    } while (0)

int main(int argc, char **argv)
{
    MUST(argc == 2);
    const char *version = NULL;
    for (int round = 0; round < 50; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        MUST(library != NULL);
        version_function get_version;
        open_function open_throttle;
        domain_function get_domain;
        allow_function allow;
        close_function close_throttle;
        free_function free_domain;
        FIND(get_version, library, "dthrottle_version");
        FIND(open_throttle, library, "dthrottle_open");
        FIND(get_domain, library, "dthrottle_domain");
        FIND(allow, library, "dthrottle_allow");
        FIND(close_throttle, library, "dthrottle_close");
        FIND(free_domain, library, "dthrottle_domain_free");

        dthrottle_t *throttle;
        dthrottle_domain_t *domain;
        MUST(open_throttle("rate = \"1/day\"", 14, &throttle, NULL, 0) == DTHROTTLE_OK);
        MUST(get_domain(throttle, NULL, 0, &domain) == DTHROTTLE_OK);
        EQUAL(allow(domain, "t", 1, 1), 1);
        EQUAL(allow(domain, "t", 1, 1), 0);
        if (version)
            CHECK(version == get_version());
        version = get_version();
        EQUAL(dlclose(library), 0);

        /* The program has unloaded the library, but it is still in memory. */
        library = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
        MUST(library != NULL);
        EQUAL(dlclose(library), 0);
        TEXT(version, DTHROTTLE_VERSION);
        EQUAL(allow(domain, "t", 1, 1), 0);
        close_throttle(throttle);
        free_domain(domain);
    }
    return check_report("load");
}
