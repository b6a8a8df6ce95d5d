/*
 * Runs sequences.json and inputs.json: calls about tags, with a manual clock.  vectors_calls FOLDER
 */
#include "json.h"

#define MAX_THROTTLES 4

static cJSON *errors;

/* Compares durations, with the tolerance that the README of the vectors allows. */
static void check_time(uint64_t got, const cJSON *expect, const char *key)
{
    const cJSON *want = json_get(expect, key);
    if (!want)
        return;
    double off = (double)got - want->valuedouble;
    if (!CHECK((off < 0 ? -off : off) <= 2 + want->valuedouble * 1e-12))
        fprintf(stderr, "    %s: got %" PRIu64 ", not %.0f\n", key, got, want->valuedouble);
}

static void check_units(uint64_t got, const cJSON *expect, const char *key)
{
    const cJSON *want = json_get(expect, key);
    if (!want)
        return;
    uint64_t units = cJSON_IsString(want) ? DTHROTTLE_UNLIMITED : json_u64(want, 0);
    if (!CHECK(got == units))
        fprintf(stderr, "    %s: got %" PRIu64 ", not %" PRIu64 "\n", key, got, units);
}

static void check_bool(bool got, const cJSON *expect, const char *key)
{
    const cJSON *want = json_get(expect, key);
    if (want && !CHECK(got == (cJSON_IsTrue(want) != 0)))
        fprintf(stderr, "    %s\n", key);
}

static void check_decision(const dthrottle_domain_t *domain, const dthrottle_decision_t *decision,
                           const cJSON *expect)
{
    check_bool(decision->allowed, expect, "allowed");
    check_bool(decision->dry_run, expect, "dry_run");
    check_units(decision->granted, expect, "granted");
    check_units(decision->limit, expect, "limit");
    check_units(decision->remaining, expect, "remaining");
    check_time(decision->delay_ns, expect, "delay_ns");
    check_time(decision->retry_after_ns, expect, "retry_after_ns");
    check_time(decision->reset_after_ns, expect, "reset_after_ns");
    const cJSON *balance = json_get(expect, "balance");
    if (cJSON_IsString(balance))
        EQUAL(decision->balance, INT64_MAX);
    else if (balance)
        EQUAL(decision->balance, balance->valuedouble);
    const cJSON *rule = json_get(expect, "rule");
    if (cJSON_IsNull(rule))
        EQUAL(decision->rule, -1);
    else if (rule)
        TEXT(dthrottle_rule_name(domain, decision->rule), rule->valuestring);
}

/* Returns a time in nanoseconds from one of two keys. */
static uint64_t time_of(const cJSON *args, const char *ns, const char *ms)
{
    const cJSON *millis = json_get(args, ms);
    return millis ? (uint64_t)(millis->valuedouble * 1e6 + 0.5) : json_u64(json_get(args, ns), 0);
}

/* Runs one call on a domain and checks its result. */
static void call(const dthrottle_domain_t *domain, const char *name, const cJSON *args, text_t tag,
                 int32_t status, const cJSON *expect)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;
    options.cost = json_u64(json_get(args, "cost"), options.cost);
    options.max_delay_ns = time_of(args, "max_delay_ns", "max_delay_ms");
    options.partial = cJSON_IsTrue(json_get(args, "partial"));
    options.allow_debt = cJSON_IsTrue(json_get(args, "allow_debt"));
    const bool plain = !options.max_delay_ns && !options.partial && !options.allow_debt;
    int32_t got;
    if (strcmp(name, "check") == 0) {
        got = plain ? dthrottle_check(domain, tag.bytes, tag.len, options.cost, &decision)
                    : dthrottle_check_with(domain, tag.bytes, tag.len, &options, &decision);
    } else if (strcmp(name, "peek") == 0) {
        got = plain ? dthrottle_peek(domain, tag.bytes, tag.len, options.cost, &decision)
                    : dthrottle_peek_with(domain, tag.bytes, tag.len, &options, &decision);
    } else if (strcmp(name, "allow") == 0) {
        got = dthrottle_allow(domain, tag.bytes, tag.len, options.cost);
        EQUAL(got, status ? status : cJSON_IsTrue(expect));
        return;
    } else if (strcmp(name, "refund") == 0) {
        got = dthrottle_refund(domain, tag.bytes, tag.len, options.cost);
    } else if (strcmp(name, "reset") == 0) {
        got = dthrottle_reset(domain, tag.bytes, tag.len);
    } else if (strcmp(name, "charge_local") == 0) {
        got = dthrottle_charge_local(domain, tag.bytes, tag.len, options.cost,
                                     time_of(args, "age_ns", "age_ms"));
    } else {
        MUST(!"the vector has an unknown call");
        return;
    }
    EQUAL(got, status);
    if (status)
        CHECK(decision.allowed);
    else
        check_decision(domain, &decision, expect);
}

/* Runs one call on a domain of a throttle. The vector may expect that the domain does not exist. */
static void call_in(const dthrottle_t *throttle, const char *name, const cJSON *args, text_t tag,
                    int32_t status, const cJSON *expect, int times)
{
    dthrottle_domain_t *domain;
    text_t domain_name = json_text(json_get(args, "domain"));
    int32_t found = dthrottle_domain(throttle, domain_name.bytes, domain_name.len, &domain);
    free(domain_name.bytes);
    if (found != DTHROTTLE_OK) {
        EQUAL(found, status);
        return;
    }
    for (int i = 0; i < times; i++)
        call(domain, name, args, tag, status, expect);
    dthrottle_domain_free(domain);
}

static void run_sequence(const cJSON *sequence)
{
    const cJSON *names = json_get(sequence, "throttles"), *step;
    dthrottle_t *throttles[MAX_THROTTLES];
    dthrottle_clock_t *manual;
    int count = cJSON_GetArraySize(names), number = 0;
    char about[256];

    check_context = about;
    MUST(count <= MAX_THROTTLES);
    MUST(dthrottle_clock_new(&manual) == DTHROTTLE_OK);
    for (int i = 0; i < count; i++)
        throttles[i] = open_on(json_word(sequence, "config"), manual);
    cJSON_ArrayForEach(step, json_get(sequence, "steps")) {
        snprintf(about, sizeof about, "%s, step %d", json_word(sequence, "name"), number++);
        OK(dthrottle_clock_set(manual, json_u64(json_get(step, "at_ns"), 0)));
        int which = 0;
        const char *on = json_word(step, "throttle");
        while (*on && strcmp(on, cJSON_GetArrayItem(names, which)->valuestring) != 0)
            which++;
        const cJSON *repeat = json_get(step, "repeat");
        text_t tag = json_text(json_get(step, "tag"));
        call_in(throttles[which], json_word(step, "call"), step, tag,
                status_of(errors, json_word(step, "error")), json_get(step, "expect"),
                repeat ? repeat->valueint : 1);
        free(tag.bytes);
    }
    for (int i = 0; i < count; i++)
        dthrottle_close(throttles[i]);
    dthrottle_clock_free(manual);
}

/* Returns a tag of inputs.json: text, bytes in hex, repeated text, or null. */
static text_t input_tag(const cJSON *tag)
{
    const cJSON *hex = json_get(tag, "bytes_hex"), *letter = json_get(tag, "repeat");
    text_t text = json_text(tag);
    if (cJSON_IsNull(tag)) {
        text.len = 1; /* NULL with a length, because NULL without a length is the empty tag */
    } else if (hex) {
        text.len = strlen(hex->valuestring) / 2;
        text.bytes = malloc(text.len + 1);
        MUST(text.bytes != NULL);
        for (size_t i = 0; i < text.len; i++) {
            unsigned byte;
            MUST(sscanf(hex->valuestring + 2 * i, "%2x", &byte) == 1);
            text.bytes[i] = (char)byte;
        }
    } else if (letter) {
        text.len = json_u64(json_get(tag, "times"), 0);
        text.bytes = malloc(text.len);
        MUST(text.bytes != NULL);
        memset(text.bytes, letter->valuestring[0], text.len);
    }
    return text;
}

static void run_input(const cJSON *input)
{
    const cJSON *args = json_get(input, "args");
    const char *name = json_word(input, "call");
    const int32_t status = status_of(errors, json_word(input, "error"));
    dthrottle_clock_t *manual;

    check_context = json_word(input, "name");
    MUST(dthrottle_clock_new(&manual) == DTHROTTLE_OK);
    dthrottle_t *throttle = open_on("rate = \"10/s\"\nburst = 10", manual);
    if (strcmp(name, "advance") == 0) {
        EQUAL(dthrottle_clock_advance(manual, time_of(args, "ns", "ms")), status);
        dthrottle_close(throttle);
    } else if (cJSON_IsTrue(json_get(input, "closed"))) {
        /* dthrottle_close() releases the throttle, so only its domains can be used afterwards. */
        dthrottle_domain_t *domain = domain_of(throttle, NULL);
        text_t tag = input_tag(json_get(args, "tag"));
        dthrottle_close(throttle);
        call(domain, name, args, tag, status, json_get(input, "expect"));
        free(tag.bytes);
        dthrottle_domain_free(domain);
    } else {
        text_t tag = input_tag(json_get(args, "tag"));
        call_in(throttle, name, args, tag, status, json_get(input, "expect"), 1);
        free(tag.bytes);
        dthrottle_close(throttle);
    }
    dthrottle_clock_free(manual);
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    cJSON *sequences = json_file(argv[1], "sequences.json");
    cJSON *inputs = json_file(argv[1], "inputs.json");
    const cJSON *item, *language;
    int sequence_count = 0, input_count = 0;

    errors = json_file(argv[1], "errors.json");
    cJSON_ArrayForEach(item, sequences) {
        run_sequence(item);
        sequence_count++;
    }
    cJSON_ArrayForEach(item, inputs) {
        cJSON_ArrayForEach(language, json_get(item, "languages")) {
            if (strcmp(language->valuestring, "c") == 0) {
                run_input(item);
                input_count++;
            }
        }
    }
    check_context = "";
    CHECK(sequence_count > 50 && input_count > 40);
    printf("%d sequences, %d inputs\n", sequence_count, input_count);
    cJSON_Delete(sequences);
    cJSON_Delete(inputs);
    cJSON_Delete(errors);
    return check_report("vectors_calls");
}
