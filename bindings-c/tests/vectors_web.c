/*
 * Runs web.json: requests to middleware.  vectors_web FOLDER
 *
 * The options of the throttle become a configuration, and the others the options of the middleware.
 * Skips cases that C cannot express: with methods and routes, which the caller compares, and with
 * null, which TOML does not have.
 */
#define _POSIX_C_SOURCE 200809L

#include "json.h"

#include <strings.h>

#define MAX_STEPS 16
#define MAX_TOML 4096

static const char *const of_throttle[] = {"rate", "burst", "rules", "charge_refused", NULL};
static const char *const of_caller[] = {"methods", "routes", NULL};

static bool is_among(const char *key, const char *const *keys)
{
    for (; *keys; keys++)
        if (strcmp(key, *keys) == 0)
            return true;
    return false;
}

/* Writes a value as TOML. Returns false if TOML cannot express it. */
static bool write_value(FILE *to, const cJSON *value)
{
    const cJSON *item;
    bool is_right = !cJSON_IsNull(value);
    if (cJSON_IsArray(value) || cJSON_IsObject(value)) {
        fputc(cJSON_IsArray(value) ? '[' : '{', to);
        cJSON_ArrayForEach(item, value) {
            if (item != value->child)
                fputc(',', to);
            if (cJSON_IsObject(value))
                fprintf(to, "%s=", item->string);
            is_right &= write_value(to, item);
        }
        fputc(cJSON_IsArray(value) ? ']' : '}', to);
    } else if (cJSON_IsNumber(value) && value->valuedouble == (double)(int64_t)value->valuedouble) {
        fprintf(to, "%" PRId64, (int64_t)value->valuedouble);
    } else {
        /* A JSON string is a TOML string unless it contains escapes. */
        char *text = cJSON_PrintUnformatted(value);
        MUST(text != NULL);
        fputs(text, to);
        free(text);
    }
    return is_right;
}

/* Writes the options of the throttle, or the others. Returns false if C cannot express them. */
static bool write_options(char *toml, const cJSON *options, bool is_of_throttle)
{
    FILE *to = fmemopen(toml, MAX_TOML, "w");
    const cJSON *option, *name = json_get(options, "domain");
    bool is_right = true;
    *toml = '\0'; /* the stream writes nothing for an empty string */
    MUST(to != NULL);
    if (is_of_throttle && name) {
        fputs("[domains.", to);
        write_value(to, name);
        fputs("]\n", to);
    }
    cJSON_ArrayForEach(option, options) {
        is_right &= !is_among(option->string, of_caller);
        if (option == name || is_among(option->string, of_throttle) != is_of_throttle)
            continue;
        fprintf(to, "%s = ", option->string);
        is_right &= write_value(to, option);
        fputc('\n', to);
    }
    MUST(fclose(to) == 0);
    return is_right;
}

static void check_hex(const dthrottle_response_t *response, const cJSON *expect)
{
    char hex[1024] = "";
    MUST(2 * response->tag_len < sizeof hex);
    for (size_t i = 0; i < response->tag_len; i++)
        snprintf(hex + 2 * i, 3, "%02x", ((const unsigned char *)response->tag)[i]);
    TEXT(hex, json_word(expect, "tag_hex"));
}

static void check_response(const dthrottle_response_t *response,
                           const dthrottle_decision_t *decision, const cJSON *expect)
{
    static const char *const actions[] = {"pass", "delay", "refuse"};
    const cJSON *want;
    size_t i = 0;

    TEXT(response->tag ? actions[response->action] : "none", json_word(expect, "action"));
    EQUAL(response->delay_ns, json_u64(json_get(expect, "delay_ns"), 0));
    EQUAL(response->status, json_u64(json_get(expect, "status"), 0));
    cJSON_ArrayForEach(want, json_get(expect, "fields")) {
        if (!CHECK(i < response->field_count))
            return;
        CHECK(strcasecmp(response->fields[i].name, want->child->valuestring) == 0);
        TEXT(response->fields[i].value, want->child->next->valuestring);
        i++;
    }
    EQUAL(response->field_count, i);
    const char *body = json_word(expect, "body");
    EQUAL(response->body_len, strlen(body));
    CHECK(response->body_len == 0 || memcmp(response->body, body, response->body_len) == 0);
    if (response->tag) {
        check_hex(response, expect);
        EQUAL(decision->granted, json_u64(json_get(expect, "taken"), 0));
    }
}

static void decide(const dthrottle_middleware_t *middleware, const cJSON *json,
                   dthrottle_response_t *response, const cJSON *expect)
{
    dthrottle_request_t request = DTHROTTLE_REQUEST_INIT;
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    const cJSON *line, *peer = json_get(json, "peer"), *can_delay = json_get(json, "can_delay");
    const char *tag = json_word(json, "tag");
    char forwarded[256] = "";

    request.peer = peer ? cJSON_GetStringValue(peer) : "203.0.113.7";
    request.peer_len = request.peer ? strlen(request.peer) : 0;
    cJSON_ArrayForEach(line, json_get(json, "forwarded")) {
        size_t len = strlen(forwarded);
        snprintf(forwarded + len, sizeof forwarded - len, "%s%s", len ? ", " : "",
                 line->valuestring);
    }
    request.forwarded = *forwarded ? forwarded : NULL;
    request.forwarded_len = strlen(forwarded);
    request.tag = *tag ? tag : NULL;
    request.tag_len = strlen(tag);
    request.scope = json_word(json, "scope");
    request.scope_len = strlen(request.scope);
    request.cost = json_u64(json_get(json, "cost"), request.cost);
    request.can_delay = !can_delay || cJSON_IsTrue(can_delay);
    OK(dthrottle_middleware_decide(middleware, &request, response, &decision));
    check_response(response, &decision, expect);
}

static void run_steps(const dthrottle_middleware_t *middleware, dthrottle_clock_t *manual,
                      const cJSON *entry)
{
    dthrottle_response_t responses[MAX_STEPS];
    const cJSON *step, *earlier;
    char about[256];
    int number = 0;

    check_context = about;
    cJSON_ArrayForEach(step, json_get(entry, "steps")) {
        MUST(number < MAX_STEPS);
        snprintf(about, sizeof about, "%s, step %d", json_word(entry, "name"), number);
        responses[number] = (dthrottle_response_t)DTHROTTLE_RESPONSE_INIT;
        OK(dthrottle_clock_set(manual, json_u64(json_get(step, "at_ns"), 0)));
        if ((earlier = json_get(step, "end_delay")) != NULL)
            OK(dthrottle_middleware_end_delay(middleware, &responses[earlier->valueint],
                                             cJSON_IsTrue(json_get(step, "gone"))));
        else if ((earlier = json_get(step, "finish")) != NULL)
            OK(dthrottle_middleware_finish(middleware, &responses[earlier->valueint],
                                           cJSON_IsTrue(json_get(step, "success"))));
        else
            decide(middleware, json_get(step, "request"), &responses[number],
                   json_get(step, "expect"));
        number++;
    }
    for (int i = 0; i < number; i++)
        dthrottle_response_free(&responses[i]);
}

/* Returns whether C can express the case. */
static bool run_case(const cJSON *entry)
{
    const cJSON *options = json_get(entry, "options");
    char config[MAX_TOML], toml[MAX_TOML], error[256] = "";
    dthrottle_middleware_t *middleware;
    dthrottle_clock_t *manual;

    check_context = json_word(entry, "name");
    if (!write_options(config, options, true) || !write_options(toml, options, false))
        return false;
    MUST(dthrottle_clock_new(&manual) == DTHROTTLE_OK);
    dthrottle_t *throttle = open_on(config, manual);
    dthrottle_domain_t *domain =
        domain_of(throttle, cJSON_GetStringValue(json_get(options, "domain")));
    int32_t status = dthrottle_middleware_new(domain, toml, strlen(toml), &middleware, error,
                                              sizeof error);
    if (!OK(status))
        fprintf(stderr, "    %s\n%s", error, toml);
    MUST(middleware != NULL);
    run_steps(middleware, manual, entry);
    dthrottle_middleware_free(middleware);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    dthrottle_clock_free(manual);
    return true;
}

/* Checks that invalid options are an error. Returns whether C can express the case. */
static bool run_bad(const cJSON *entry)
{
    const cJSON *options = json_get(entry, "options"), *says;
    const char *field = json_word(entry, "field");
    char config[MAX_TOML], toml[MAX_TOML], error[256] = "";
    dthrottle_middleware_t *middleware;

    check_context = json_word(entry, "why");
    if (is_among(field, of_throttle) || strcmp(field, "domain") == 0 ||
        !write_options(config, options, true) || !write_options(toml, options, false))
        return false;
    dthrottle_t *throttle = open_on(config, NULL);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    EQUAL(dthrottle_middleware_new(domain, toml, strlen(toml), &middleware, error, sizeof error),
          DTHROTTLE_ERR_CONFIG);
    CHECK(strstr(error, field) != NULL);
    cJSON_ArrayForEach(says, json_get(entry, "says")) {
        if (!CHECK(strstr(error, says->valuestring) != NULL))
            fprintf(stderr, "    \"%s\" is not in \"%s\"\n", says->valuestring, error);
    }
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    return true;
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    cJSON *web = json_file(argv[1], "web.json");
    const cJSON *entry;
    int cases = 0, bad = 0;

    cJSON_ArrayForEach(entry, json_get(web, "cases"))
        cases += run_case(entry);
    cJSON_ArrayForEach(entry, json_get(web, "bad"))
        bad += run_bad(entry);
    check_context = "";
    CHECK(cases > 40 && bad > 12);
    printf("%d cases, %d errors\n", cases, bad);
    cJSON_Delete(web);
    return check_report("vectors_web");
}
