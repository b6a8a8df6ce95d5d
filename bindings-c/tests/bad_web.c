/*
 * Invalid arguments of the calls for HTTP, as in bad_calls.c. After each error the response must
 * pass the request and have no memory.
 */
#include "bad_input.h"

/* A response with wrong values, which a failed call must overwrite. */
static dthrottle_response_t refusing(void)
{
    dthrottle_response_t response = DTHROTTLE_RESPONSE_INIT;
    response.action = DTHROTTLE_REFUSE;
    response.status = 429;
    response.field_count = 7;
    response.delay_ns = 9;
    return response;
}

static void check_passing(const dthrottle_response_t *response)
{
    EQUAL(response->size, sizeof *response);
    EQUAL(response->action, DTHROTTLE_PASS);
    CHECK(!response->status && !response->fields && !response->field_count && !response->delay_ns);
    CHECK(!response->body && !response->body_len && !response->tag && !response->tag_len);
    CHECK(!response->memory);
}

static void address_calls_reject_invalid_arguments(void)
{
    uint8_t address[17] = {1}, tag[DTHROTTLE_ADDRESS_SIZE];
    const size_t lengths[] = {0, 3, 5, 15, 17};
    size_t len = 7;

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        BAD(dthrottle_address_tag(address, lengths[i], 64, tag, &len));
        EQUAL(len, 0);
    }
    BAD(dthrottle_address_tag(NULL, 4, 64, tag, &len));
    BAD(dthrottle_address_tag(address, TOO_LONG, 64, tag, &len));
    BAD(dthrottle_address_tag(address, 16, 0, tag, &len));
    BAD(dthrottle_address_tag(address, 16, 129, tag, &len));
    BAD(dthrottle_address_tag(address, 16, 64, NULL, &len));
    EQUAL(len, 0);
    BAD(dthrottle_address_tag(address, 16, 64, tag, NULL));
}

static void header_calls_reject_invalid_arguments(void)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT, without_size = decision;
    dthrottle_response_t response = refusing(), small = response;
    const int32_t kinds[] = {-1, 5, INT32_MIN, INT32_MAX};

    BAD(dthrottle_header_kind(NULL, 3));
    BAD(dthrottle_header_kind("on", TOO_LONG));
    BAD(dthrottle_header_kind(NOT_UTF8, 2));
    EQUAL(dthrottle_header_kind(NULL, 0), DTHROTTLE_ERR_CONFIG);

    BAD(dthrottle_header_fields(NULL, DTHROTTLE_HEADERS_STANDARD, &decision, &response));
    check_passing(&response);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        BAD(dthrottle_header_fields(domain, kinds[i], &decision, &response));
    BAD(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_STANDARD, NULL, &response));
    without_size.size = 0;
    BAD(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_STANDARD, &without_size, &response));
    BAD(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_STANDARD, &decision, NULL));
    small.size = sizeof small - 1;
    BAD(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_STANDARD, &decision, &small));
    EQUAL(small.status, 429);
    dthrottle_response_free(NULL);
    dthrottle_response_free(&small);
    EQUAL(small.status, 429);

    /* A decision with figures that no check returns must not crash the library. */
    decision.deciding = 77;
    decision.rule = -9;
    OK(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_STANDARD, &decision, &response));
    check_passing(&response);
    decision.deciding = 0;
    decision.limit = UINT64_MAX;
    decision.balance = INT64_MIN;
    decision.reset_after_ns = decision.retry_after_ns = UINT64_MAX;
    OK(dthrottle_header_fields(domain, DTHROTTLE_HEADERS_STANDARD, &decision, &response));
    EQUAL(response.field_count, 2);
    dthrottle_response_free(&response);
    check_passing(&response);
}

static void middleware_rejects_invalid_options(void)
{
    static const char *const wrong[] = {
        "status = 200", "max_deleyed = 1", "rate = \"1/s\"", "methods = [\"GET\"]", "cost = 4",
        "routes = [\"/\"]", "tag = \"cookie:x\"", "allow = [\"name\"]", "not TOML",
    };
    dthrottle_middleware_t *middleware = NULL;
    char error[256];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        check_context = wrong[i];
        EQUAL(dthrottle_middleware_new(domain, wrong[i], strlen(wrong[i]), &middleware, error,
                                       sizeof error),
              DTHROTTLE_ERR_CONFIG);
        CHECK(middleware == NULL && *error);
    }
    check_context = "";
    BAD(dthrottle_middleware_new(NULL, NULL, 0, &middleware, NULL, 0));
    BAD(dthrottle_middleware_new(domain, NULL, 1, &middleware, NULL, 0));
    BAD(dthrottle_middleware_new(domain, "", TOO_LONG, &middleware, NULL, 0));
    BAD(dthrottle_middleware_new(domain, NOT_UTF8, 2, &middleware, NULL, 0));
    BAD(dthrottle_middleware_new(domain, NULL, 0, NULL, NULL, 0));
    dthrottle_middleware_free(NULL);
}

static void middleware_calls_reject_invalid_arguments(void)
{
    dthrottle_middleware_t *middleware;
    dthrottle_request_t good = DTHROTTLE_REQUEST_INIT, request;
    dthrottle_response_t response = refusing();
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    char text[8];

    MUST(dthrottle_middleware_new(domain, NULL, 0, &middleware, NULL, 0) == DTHROTTLE_OK);
    good.peer = "203.0.113.7";
    good.peer_len = strlen(good.peer);
    decision.allowed = false;
    BAD(dthrottle_middleware_decide(NULL, &good, &response, &decision));
    check_passing(&response);
    CHECK(decision.allowed);
    BAD(dthrottle_middleware_decide(middleware, NULL, &response, &decision));
    BAD(dthrottle_middleware_decide(middleware, &good, NULL, &decision));
    decision.size = 0;
    BAD(dthrottle_middleware_decide(middleware, &good, &response, &decision));
    check_passing(&response);
    const char **const texts[] = {&request.peer, &request.forwarded, (const char **)&request.tag,
                                  &request.scope};
    size_t *const lens[] = {&request.peer_len, &request.forwarded_len, &request.tag_len,
                            &request.scope_len};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        request = good;
        *texts[i] = NULL;
        *lens[i] = 1;
        BAD(dthrottle_middleware_decide(middleware, &request, &response, NULL));
        *texts[i] = "x";
        *lens[i] = TOO_LONG;
        BAD(dthrottle_middleware_decide(middleware, &request, &response, NULL));
        check_passing(&response);
    }
    /* None of these calls took a unit, and the response of a request that passes needs no end. */
    OK(dthrottle_middleware_decide(middleware, &good, &response, NULL));
    EQUAL(response.action, DTHROTTLE_PASS);
    BAD(dthrottle_middleware_end_delay(NULL, &response, false));
    BAD(dthrottle_middleware_end_delay(middleware, NULL, false));
    OK(dthrottle_middleware_end_delay(middleware, &response, false));
    BAD(dthrottle_middleware_finish(NULL, &response, true));
    BAD(dthrottle_middleware_finish(middleware, NULL, true));
    OK(dthrottle_middleware_finish(middleware, &response, true));
    dthrottle_response_free(&response);
    OK(dthrottle_middleware_end_delay(middleware, &response, false));
    OK(dthrottle_middleware_finish(middleware, &response, true));
    BAD(dthrottle_middleware_warning(NULL, text, sizeof text));
    EQUAL(dthrottle_middleware_warning(middleware, NULL, 8), 0);
    dthrottle_middleware_free(middleware);
}

int main(void)
{
    bad_input_begin();
    address_calls_reject_invalid_arguments();
    header_calls_reject_invalid_arguments();
    middleware_rejects_invalid_options();
    middleware_calls_reject_invalid_arguments();
    return bad_input_end("bad_web");
}
