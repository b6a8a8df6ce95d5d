/*
 * HTTP: addresses as tags, header fields, and middleware. Tests only what differs in C;
 * vectors_web.c has the cases that all languages share.
 */
#include "check.h"

static dthrottle_clock_t *manual;

static const char *field(const dthrottle_response_t *response, const char *name)
{
    for (size_t i = 0; i < response->field_count; i++)
        if (strcmp(response->fields[i].name, name) == 0)
            return response->fields[i].value;
    return NULL;
}

static void check_tag(const uint8_t *address, size_t len, uint32_t prefix, const uint8_t *want,
                      size_t want_len)
{
    uint8_t tag[DTHROTTLE_ADDRESS_SIZE];
    size_t tag_len = 99;
    OK(dthrottle_address_tag(address, len, prefix, tag, &tag_len));
    EQUAL(tag_len, want_len);
    CHECK(memcmp(tag, want, want_len) == 0);
}

static void addresses_become_tags(void)
{
    static const uint8_t v4[] = {203, 0, 113, 7};
    static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 203, 0, 113, 7};
    static const uint8_t nat64[16] = {0, 0x64, 0xff, 0x9b, [12] = 203, 0, 113, 7};
    static const uint8_t v6[16] = {0x20, 1, 0xd, 0xb8, 0, 1, 0, 0xff, 1, 2, 3, 4, 5, 6, 7, 8};
    static const uint8_t at_64[16] = {0x20, 1, 0xd, 0xb8, 0, 1, 0, 0xff};
    static const uint8_t at_60[16] = {0x20, 1, 0xd, 0xb8, 0, 1, 0, 0xf0};

    check_context = "addresses";
    check_tag(v4, sizeof v4, 64, v4, sizeof v4);
    check_tag(mapped, sizeof mapped, 64, v4, sizeof v4);
    check_tag(nat64, sizeof nat64, 1, v4, sizeof v4);
    check_tag(v6, sizeof v6, 64, at_64, sizeof at_64);
    check_tag(v6, sizeof v6, 60, at_60, sizeof at_60);
    check_tag(v6, sizeof v6, 128, v6, sizeof v6);
}

static void names_of_header_kinds_are_known(void)
{
    static const struct {
        const char *name;
        int32_t kind;
    } kinds[] = {
        {"on", DTHROTTLE_HEADERS_STANDARD},       {"standard", DTHROTTLE_HEADERS_STANDARD},
        {"draft-8", DTHROTTLE_HEADERS_STANDARD},  {"draft-7", DTHROTTLE_HEADERS_DRAFT_7},
        {"draft-6", DTHROTTLE_HEADERS_DRAFT_6},   {"x-ratelimit", DTHROTTLE_HEADERS_X_RATELIMIT},
        {"none", DTHROTTLE_HEADERS_NONE},         {"off", DTHROTTLE_HEADERS_NONE},
        {"draft7", DTHROTTLE_ERR_CONFIG},         {"", DTHROTTLE_ERR_CONFIG},
    };
    check_context = "kinds";
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        EQUAL(dthrottle_header_kind(kinds[i].name, strlen(kinds[i].name)), kinds[i].kind);
}

static void header_fields_are_written_for_each_kind(void)
{
    dthrottle_t *throttle = open_on("rate = \"2/minute\"", manual);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    dthrottle_response_t response = DTHROTTLE_RESPONSE_INIT;

    check_context = "fields";
    OK(dthrottle_check(domain, "a", 1, 2, &decision));
    OK(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_STANDARD, &decision, &response));
    EQUAL(response.field_count, 2);
    TEXT(field(&response, "RateLimit-Policy"), "\"default\";q=2;w=60");
    TEXT(field(&response, "RateLimit"), "\"default\";r=0;t=30");
    dthrottle_response_free(&response);
    CHECK(response.memory == NULL && response.field_count == 0);
    dthrottle_response_free(&response);

    OK(dthrottle_check(domain, "a", 1, 1, &decision));
    OK(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_NONE, &decision, &response));
    EQUAL(response.field_count, 1);
    TEXT(field(&response, "Retry-After"), "30");
    dthrottle_response_free(&response);
    OK(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_DRAFT_7, &decision, &response));
    TEXT(field(&response, "RateLimit"), "limit=2, remaining=0, reset=30");
    dthrottle_response_free(&response);
    OK(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_DRAFT_6, &decision, &response));
    TEXT(field(&response, "RateLimit-Limit"), "2");
    dthrottle_response_free(&response);
    OK(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_X_RATELIMIT, &decision, &response));
    TEXT(field(&response, "X-RateLimit-Remaining"), "0");
    dthrottle_response_free(&response);

    /* An allowed decision without figures, as after an error, has no fields. */
    decision = (dthrottle_decision_t)DTHROTTLE_DECISION_INIT;
    OK(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_STANDARD, &decision, &response));
    CHECK(response.field_count == 0 && response.memory == NULL);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
}

static dthrottle_middleware_t *middleware_of(const dthrottle_domain_t *domain, const char *options)
{
    dthrottle_middleware_t *middleware;
    char error[256];
    if (!OK(dthrottle_middleware_new(domain, options, strlen(options), &middleware, error,
                                     sizeof error)))
        fprintf(stderr, "    %s\n", error);
    MUST(middleware != NULL);
    return middleware;
}

static void invalid_utf8_does_not_bypass_the_limit(void)
{
    dthrottle_t *throttle = open_on("rate = \"1/minute\"", manual);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    dthrottle_middleware_t *middleware = middleware_of(domain, "trusted_proxies = 1");
    dthrottle_request_t request = DTHROTTLE_REQUEST_INIT;
    dthrottle_response_t response = DTHROTTLE_RESPONSE_INIT;
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;

    check_context = "invalid UTF-8";
    request.peer = "203.0.113.7";
    request.peer_len = strlen(request.peer);
    request.forwarded = "\xff\xfe";
    request.forwarded_len = 2;
    for (int32_t action = DTHROTTLE_PASS; action <= DTHROTTLE_REFUSE; action += 2) {
        OK(dthrottle_middleware_decide(middleware, &request, &response, &decision));
        EQUAL(response.action, action);
        EQUAL(decision.allowed, action == DTHROTTLE_PASS);
        EQUAL(response.tag_len, 4);
        dthrottle_response_free(&response);
    }
    dthrottle_middleware_free(middleware);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
}

static void request_tags_are_checked_and_warnings_are_returned(void)
{
    dthrottle_t *throttle = open_on("rate = \"1/minute\"", manual);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    dthrottle_middleware_t *middleware =
        middleware_of(domain, "tag = \"request\"\nallow = [\"partner\"]");
    dthrottle_request_t request = DTHROTTLE_REQUEST_INIT;
    dthrottle_response_t response = DTHROTTLE_RESPONSE_INIT;
    char warning[200];

    check_context = "tags and warnings";
    request.tag = "partner";
    request.tag_len = strlen("partner");
    OK(dthrottle_middleware_decide(middleware, &request, &response, NULL));
    CHECK(response.action == DTHROTTLE_PASS && response.tag == NULL && response.memory == NULL);
    EQUAL(dthrottle_middleware_warning(middleware, warning, sizeof warning), 0);
    TEXT(warning, "");
    request.tag = "";
    request.tag_len = 0;
    OK(dthrottle_middleware_decide(middleware, &request, &response, NULL));
    EQUAL(dthrottle_middleware_warning(middleware, warning, sizeof warning), 1);
    CHECK(strncmp(warning, "DTHROTTLE_NO_TAG: ", 18) == 0);
    EQUAL(dthrottle_middleware_warning(middleware, warning, sizeof warning), 1);
    EQUAL(dthrottle_middleware_warning(middleware, warning, sizeof warning), 0);
    dthrottle_middleware_free(middleware);
    CHECK(memcmp(response.tag, "address", 7) == 0);
    TEXT(field(&response, "RateLimit-Policy"), "\"default\";q=1;w=60");
    dthrottle_response_free(&response);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
}

/* Ending a delay twice must not end the delay of another request. */
static void a_delay_ends_once(void)
{
    dthrottle_t *throttle = open_on("rate = \"1/s\"", manual);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    dthrottle_middleware_t *middleware = middleware_of(domain, "max_delay = 60\nmax_delayed = 2");
    dthrottle_request_t request = DTHROTTLE_REQUEST_INIT;
    dthrottle_response_t responses[3] = {DTHROTTLE_RESPONSE_INIT, DTHROTTLE_RESPONSE_INIT,
                                         DTHROTTLE_RESPONSE_INIT};
    dthrottle_response_t more = DTHROTTLE_RESPONSE_INIT;

    check_context = "a delay ends once";
    request.can_delay = true;
    request.peer = "203.0.113.7";
    request.peer_len = strlen(request.peer);
    for (int i = 0; i < 3; i++) {
        OK(dthrottle_middleware_decide(middleware, &request, &responses[i], NULL));
        EQUAL(responses[i].action, i == 0 ? DTHROTTLE_PASS : DTHROTTLE_DELAY);
        EQUAL(responses[i].delay_ns, i * INT64_C(1000000000));
    }
    OK(dthrottle_middleware_end_delay(middleware, &responses[0], true));
    OK(dthrottle_middleware_decide(middleware, &request, &more, NULL));
    EQUAL(more.action, DTHROTTLE_REFUSE);
    EQUAL(more.status, 429);
    dthrottle_response_free(&more);
    for (int i = 0; i < 3; i++)
        OK(dthrottle_middleware_end_delay(middleware, &responses[1], false));
    OK(dthrottle_middleware_decide(middleware, &request, &more, NULL));
    EQUAL(more.action, DTHROTTLE_DELAY);
    OK(dthrottle_middleware_end_delay(middleware, &more, true));
    dthrottle_response_free(&more);
    OK(dthrottle_middleware_end_delay(middleware, &responses[2], true));
    for (int i = 0; i < 3; i++)
        dthrottle_response_free(&responses[i]);
    dthrottle_middleware_free(middleware);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
}

static void a_request_is_refunded_once(void)
{
    dthrottle_t *throttle = open_on("rate = \"1/minute\"\nburst = 4", manual);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    dthrottle_middleware_t *middleware =
        middleware_of(domain, "cost = 2\nmax_delay = 600\nskip_failed_requests = true");
    dthrottle_request_t request = DTHROTTLE_REQUEST_INIT;
    dthrottle_response_t responses[3] = {DTHROTTLE_RESPONSE_INIT, DTHROTTLE_RESPONSE_INIT,
                                         DTHROTTLE_RESPONSE_INIT};
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;

    check_context = "a request is refunded once";
    request.can_delay = true;
    request.peer = "203.0.113.9";
    request.peer_len = strlen(request.peer);
    for (int i = 0; i < 3; i++)
        OK(dthrottle_middleware_decide(middleware, &request, &responses[i], &decision));
    EQUAL(responses[2].action, DTHROTTLE_DELAY);
    EQUAL(decision.balance, -2);
    OK(dthrottle_middleware_end_delay(middleware, &responses[2], true));
    for (int i = 0; i < 2; i++) {
        OK(dthrottle_middleware_finish(middleware, &responses[2], false));
        OK(dthrottle_peek(domain, responses[0].tag, responses[0].tag_len, 1, &decision));
        EQUAL(decision.balance, 0);
    }
    for (int i = 0; i < 2; i++) {
        OK(dthrottle_middleware_finish(middleware, &responses[0], false));
        OK(dthrottle_peek(domain, responses[0].tag, responses[0].tag_len, 1, &decision));
        EQUAL(decision.balance, 2);
    }
    for (int i = 0; i < 3; i++)
        dthrottle_response_free(&responses[i]);
    dthrottle_middleware_free(middleware);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
}

int main(void)
{
    MUST(dthrottle_clock_new(&manual) == DTHROTTLE_OK);
    addresses_become_tags();
    names_of_header_kinds_are_known();
    header_fields_are_written_for_each_kind();
    invalid_utf8_does_not_bypass_the_limit();
    request_tags_are_checked_and_warnings_are_returned();
    a_delay_ends_once();
    a_request_is_refunded_once();
    dthrottle_clock_free(manual);
    return check_report("web");
}
