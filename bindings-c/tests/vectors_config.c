/*
 * Runs rates.json, configs.json and errors.json, which test configurations and error numbers.
 * vectors_config FOLDER
 */
#include "json.h"

/* Converts a JSON value to TOML. Only numbers that JSON does not have differ. */
static const char *as_toml(const cJSON *value, char *room, size_t size)
{
    static const char *const names[] = {"NaN", "Infinity", "-Infinity"};
    static const char *const toml[] = {"nan", "inf", "-inf"};
    for (size_t i = 0; i < 3; i++) {
        if (cJSON_IsString(value) && strcmp(value->valuestring, names[i]) == 0)
            return toml[i];
    }
    MUST(cJSON_PrintPreallocated((cJSON *)value, room, (int)size, 0));
    return room;
}

/* Opens a throttle with the rate and burst of a vector, in TOML. */
static int32_t open_toml(const cJSON *vector, const dthrottle_clock_t *manual, dthrottle_t **out)
{
    char toml[1024], room[512], error[512] = "";
    const cJSON *text = json_get(vector, "text"), *burst = json_get(vector, "burst");
    dthrottle_config_t *config;
    int len = 0;

    *out = NULL;
    if (text)
        MUST(cJSON_PrintPreallocated((cJSON *)text, room, sizeof room, 0));
    len += snprintf(toml, sizeof toml, "rate = %s\n",
                    text ? room : as_toml(json_get(vector, "number"), room, sizeof room));
    if (burst)
        len += snprintf(toml + len, sizeof toml - (size_t)len, "burst = %s\n",
                        as_toml(burst, room, sizeof room));
    MUST((size_t)len < sizeof toml);
    MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
    OK(dthrottle_config_set_clock(config, manual));
    int32_t status = dthrottle_config_toml(config, toml, (size_t)len, error, sizeof error);
    if (status == DTHROTTLE_OK)
        status = dthrottle_open_config(config, out, error, sizeof error);
    CHECK((status == DTHROTTLE_OK) == (error[0] == 0));
    dthrottle_config_free(config);
    return status;
}

/* Like open_toml(), by calls. Returns false unless the rate is text and the burst a number. */
static bool open_set(const cJSON *vector, const dthrottle_clock_t *manual, dthrottle_t **out,
                     int32_t *status)
{
    text_t rate = json_text(json_get(vector, "text"));
    const cJSON *burst = json_get(vector, "burst");
    bool possible = rate.bytes && (!burst || (cJSON_IsNumber(burst) && burst->valuedouble > 0 &&
                                              burst->valuedouble < 9e15 &&
                                              burst->valuedouble ==
                                                  (double)(uint64_t)burst->valuedouble));
    dthrottle_config_t *config;
    dthrottle_rule_t rule = DTHROTTLE_RULE_INIT;

    *out = NULL;
    if (possible) {
        MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
        rule.rate = rate.bytes;
        rule.rate_len = rate.len;
        rule.burst = json_u64(burst, 0);
        OK(dthrottle_config_add_rule(config, NULL, 0, &rule));
        OK(dthrottle_config_set_clock(config, manual));
        *status = dthrottle_open_config(config, out, NULL, 0);
        dthrottle_config_free(config);
    }
    free(rate.bytes);
    return possible;
}

/* Takes the whole burst, and then one more unit, which must be refused. */
static void check_rate(dthrottle_t *throttle, const cJSON *vector)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    uint64_t limit = json_u64(json_get(vector, "limit"), 0);
    double retry = json_get(vector, "retry_after_ns")->valuedouble;

    EQUAL(dthrottle_rule_limit(domain, 0), limit);
    OK(dthrottle_check(domain, "t", 1, limit, &decision));
    CHECK(decision.allowed);
    EQUAL(decision.limit, limit);
    OK(dthrottle_check(domain, "t", 1, 1, &decision));
    CHECK(!decision.allowed);
    double off = (double)decision.retry_after_ns - retry;
    CHECK((off < 0 ? -off : off) <= 2 + retry * 1e-12);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
}

static void run_rate(const cJSON *vector, bool good)
{
    dthrottle_clock_t *manual;
    dthrottle_t *throttle;
    int32_t status = DTHROTTLE_OK, want = good ? DTHROTTLE_OK : DTHROTTLE_ERR_CONFIG;
    char *about = cJSON_PrintUnformatted(vector);

    check_context = about;
    MUST(dthrottle_clock_new(&manual) == DTHROTTLE_OK);
    if (EQUAL(open_toml(vector, manual, &throttle), want) && good)
        check_rate(throttle, vector);
    if (open_set(vector, manual, &throttle, &status) && EQUAL(status, want) && good)
        check_rate(throttle, vector);
    dthrottle_clock_free(manual);
    cJSON_free(about);
}

static void run_good_config(const cJSON *vector)
{
    dthrottle_t *throttle;
    dthrottle_domain_t *domain;
    const cJSON *rules, *rule;
    text_t toml = json_text(json_get(vector, "toml"));

    check_context = json_word(vector, "name");
    if (!OK(dthrottle_open(toml.bytes, toml.len, &throttle, NULL, 0)))
        return;
    cJSON_ArrayForEach(rules, json_get(vector, "domains")) {
        domain = domain_of(throttle, rules->string);
        TEXT(dthrottle_domain_name(domain), rules->string);
        EQUAL(dthrottle_rule_count(domain), cJSON_GetArraySize(rules));
        int32_t index = 0;
        cJSON_ArrayForEach(rule, rules) {
            TEXT(dthrottle_rule_name(domain, index), json_word(rule, "name"));
            EQUAL(dthrottle_rule_limit(domain, index), json_u64(json_get(rule, "limit"), 0));
            index++;
        }
        dthrottle_domain_free(domain);
    }
    dthrottle_close(throttle);
    free(toml.bytes);
}

static void run_bad_config(const cJSON *vector)
{
    char error[1024], start[512] = "";
    dthrottle_t *throttle;
    const cJSON *word, *line = json_get(vector, "line"), *field = json_get(vector, "field");
    text_t toml = json_text(json_get(vector, "toml"));

    check_context = json_word(vector, "name");
    EQUAL(dthrottle_open(toml.bytes, toml.len, &throttle, error, sizeof error),
          DTHROTTLE_ERR_CONFIG);
    CHECK(throttle == NULL);
    if (cJSON_IsNumber(line)) {
        snprintf(start, sizeof start, "line %d: ", line->valueint);
        CHECK(strstr(error, start) == error);
    }
    if (cJSON_IsString(field)) {
        snprintf(start, sizeof start, "`%s` ", field->valuestring);
        CHECK(strstr(error, start) != NULL);
    }
    cJSON_ArrayForEach(word, json_get(vector, "says")) {
        if (!CHECK(strstr(error, word->valuestring) != NULL))
            fprintf(stderr, "    \"%s\" does not say \"%s\"\n", error, word->valuestring);
    }
    free(toml.bytes);
}

/* Checks that the header has the numbers and names of errors.json. */
static void run_errors(const cJSON *errors)
{
    static const struct {
        const char *name;
        int32_t status;
    } header[] = {
        {"DTHROTTLE_ERR_CONFIG", DTHROTTLE_ERR_CONFIG},
        {"DTHROTTLE_ERR_COST", DTHROTTLE_ERR_COST},
        {"DTHROTTLE_ERR_DOMAIN", DTHROTTLE_ERR_DOMAIN},
        {"DTHROTTLE_ERR_CLOSED", DTHROTTLE_ERR_CLOSED},
        {"DTHROTTLE_ERR_ARGUMENT", DTHROTTLE_ERR_ARGUMENT},
        {"DTHROTTLE_ERR_FILE", DTHROTTLE_ERR_FILE},
        {"DTHROTTLE_ERR_INTERNAL", DTHROTTLE_ERR_INTERNAL},
    };
    const cJSON *error;
    size_t at = 0;
    EQUAL(cJSON_GetArraySize(errors), sizeof header / sizeof header[0]);
    cJSON_ArrayForEach(error, errors) {
        check_context = json_word(error, "kind");
        TEXT(json_word(error, "c_name"), header[at].name);
        EQUAL(json_get(error, "c")->valueint, header[at].status);
        CHECK(strcmp(dthrottle_status_text(header[at].status), dthrottle_status_text(1)) != 0);
        at++;
    }
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    cJSON *rates = json_file(argv[1], "rates.json");
    cJSON *configs = json_file(argv[1], "configs.json");
    cJSON *errors = json_file(argv[1], "errors.json");
    const cJSON *vector;
    int rate_count = 0, config_count = 0;

    cJSON_ArrayForEach(vector, json_get(rates, "good")) {
        run_rate(vector, true);
        rate_count++;
    }
    cJSON_ArrayForEach(vector, json_get(rates, "bad")) {
        run_rate(vector, false);
        rate_count++;
    }
    cJSON_ArrayForEach(vector, json_get(configs, "good")) {
        run_good_config(vector);
        config_count++;
    }
    cJSON_ArrayForEach(vector, json_get(configs, "bad")) {
        if (json_get(vector, "toml")) { /* C has no configurations as objects */
            run_bad_config(vector);
            config_count++;
        }
    }
    run_errors(errors);
    check_context = "";
    CHECK(rate_count > 200 && config_count > 100);
    printf("%d rates, %d configurations\n", rate_count, config_count);
    cJSON_Delete(rates);
    cJSON_Delete(configs);
    cJSON_Delete(errors);
    return check_report("vectors_config");
}
