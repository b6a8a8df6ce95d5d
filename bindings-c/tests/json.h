/*
 * Reads the shared vectors with cJSON. Its strings end at the first NUL, so a NUL is replaced with
 * U+F8FF while parsing. Its numbers are doubles, which can represent all numbers that these tests
 * use (2^64 - 1 by saturation).
 */
#ifndef JSON_H
#define JSON_H

#include "check.h"

#include <cjson/cJSON.h>

typedef struct {
    char *bytes; /* NULL if the string does not exist */
    size_t len;
} text_t;

/* Reads and parses a file in a folder. */
static inline cJSON *json_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    MUST(file != NULL);
    size_t len = 0, room = 1 << 16;
    char *text = malloc(room);
    for (;;) {
        MUST(text != NULL);
        size_t got = fread(text + len, 1, room - len - 1, file);
        if (got == 0)
            break;
        len += got;
        if (room - len < 2)
            text = realloc(text, room *= 2);
    }
    fclose(file);
    text[len] = 0;
    for (char *at = text; (at = strchr(at, '\\')) != NULL; at += 2) {
        if (strncmp(at, "\\u0000", 6) == 0)
            memcpy(at, "\\uF8FF", 6);
    }
    cJSON *json = cJSON_Parse(text);
    free(text);
    MUST(json != NULL);
    return json;
}

static inline cJSON *json_get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* Copies a string to memory of exactly its length, so that the sanitizers find reads beyond it. */
static inline text_t json_text(const cJSON *string)
{
    text_t text = {NULL, 0};
    if (!cJSON_IsString(string))
        return text;
    const char *from = string->valuestring;
    text.bytes = malloc(strlen(from) + 1);
    MUST(text.bytes != NULL);
    while (*from) {
        if (strncmp(from, "\xef\xa3\xbf", 3) == 0) {
            text.bytes[text.len++] = 0;
            from += 3;
        } else {
            text.bytes[text.len++] = *from++;
        }
    }
    char *exact = realloc(text.bytes, text.len ? text.len : 1);
    MUST(exact != NULL);
    text.bytes = exact;
    return text;
}

static inline uint64_t json_u64(const cJSON *number, uint64_t otherwise)
{
    if (!cJSON_IsNumber(number))
        return otherwise;
    double value = number->valuedouble;
    MUST(value >= 0 && value == (value >= 9.2e18 ? value : (double)(uint64_t)value));
    return value >= 18446744073709551615.0 ? UINT64_MAX : (uint64_t)value;
}

static inline const char *json_word(const cJSON *object, const char *key)
{
    const char *word = cJSON_GetStringValue(json_get(object, key));
    return word ? word : "";
}

/* Returns the status of a kind of error, from errors.json. */
static inline int32_t status_of(const cJSON *errors, const char *kind)
{
    const cJSON *error;
    cJSON_ArrayForEach(error, errors) {
        if (strcmp(json_word(error, "kind"), kind) == 0)
            return json_get(error, "c")->valueint;
    }
    return DTHROTTLE_OK;
}

#endif
