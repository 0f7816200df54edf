/* SPDX-License-Identifier: Apache-2.0
 * Tables as people have them: other separators, decimal commas, text, missing values, dates, ids. Each
 * is read correctly, or refused with the advice that helps. */
#include "fixture.h"

/* What was read, on one line: "a b=x b=y | 1 0 1, 2 1 0 | cat dog | shop 1, shop 2 | id 7, id 8". */
static const char *describe(const fds_dataset *ds, char *out, size_t size) {
    size_t used = 0;
    out[0] = 0;
#define SAY(...) used += (size_t)snprintf(out + used, size - used, __VA_ARGS__)
    for (size_t f = 0; f < ds->shape.channels; f++)
        SAY("%s%s", f ? " " : "", fds_dataset_feature_name(ds, f));
    SAY(" |");
    for (size_t i = 0; i < ds->count; i++)
        for (size_t f = 0; f < ds->shape.channels; f++)
            SAY("%s%g", f || !i ? " " : ", ", (double)ds->floats[i * ds->sample_size + f]);
    SAY(" |");
    for (size_t i = 0; i < ds->count; i++)
        SAY(" %s", fds_dataset_class_name(ds, ds->labels[i]));
    for (size_t i = 0; ds->providers && i < ds->count; i++)
        SAY("%s %s", i ? "," : " |", fds_dataset_provider_name(ds, ds->provider_ids[i]));
    for (size_t i = 0; ds->sample_names && i < ds->count; i++)
        SAY("%s %s", i ? "," : " |", ds->sample_names[i]);
#undef SAY
    return out;
}

typedef struct {
    const char *text; /* of the file */
    fds__data_options options;
    const char *read, *advice; /* what it is, or a part of the refusal */
} oddity;

static const oddity oddities[] = {
    /* separators */
    {"x;label\n1;a\n2;b\n", {0}, "x | 1, 2 | a b", NULL},
    {"x\tlabel\n1\ta\n2\tb\n", {0}, "x | 1, 2 | a b", NULL},
    {"x|label\n1|a\n2|b\n", {0}, "x | 1, 2 | a b", NULL},
    {"x,y;label\n1,5;a\n2,25;b\n", {0}, "x,y | 1.5, 2.25 | a b", NULL},
    {"sep=;\nx;label\n1;a\n2;b\n", {0}, "x | 1, 2 | a b", NULL},
    {"\"a;b\",label\n1,a\n2,b\n", {0}, "a;b | 1, 2 | a b", NULL},
    {"note;x;label\n\"a, b\";1;a\n\"c, d\";2;b\n", {.drop = "note"}, "x | 1, 2 | a b", NULL},
    {"x;label\n1;a\n",
     {.separator = ','},
     NULL,
     "the columns are \"x;label\", separated by a comma"},
    {"x:label\n1:a\n", {0}, NULL, "no column is named \"label\""},
    /* numbers */
    {"x;label\n1,5;a\n-2,25;b\n", {0}, "x | 1.5, -2.25 | a b", NULL},
    {"x;label\n1,5;a\n2.5;b\n", {0}, "x | 1.5, 2.5 | a b", NULL},
    {"x;label\n1.234,5;a\n2.5;b\n3.5;b\n",
     {0},
     NULL,
     "line 2, column \"x\": \"1.234,5\" is not a finite"},
    {"x,label\n\"1,234\",a\n2,b\n3,c\n",
     {0},
     NULL,
     "\"1,234\" is not a finite number, but 2 other"},
    {"x,label\n 1 ,a\n+2e0,b\n", {0}, "x | 1, 2 | a b", NULL},
    {"x,label\n1,a\n2,b\n3,c\noops,d\n", {0}, NULL, "line 5, column \"x\": \"oops\""},
    {"x,label\n1,a\n2,b\n3,c\noops,d\n", {0}, NULL, "--categorical"},
    {"x,label\n1,a\n2,b\n3,c\ninf,d\n", {0}, NULL, "\"inf\" is not a finite number"},
    {"x,label\n1,a\n2,b\n3,c\n1e39,d\n", {0}, NULL, "\"1e39\""},
    /* text */
    {"x,colour,label\n1,red,a\n2,blue,b\n",
     {0},
     "x colour=blue colour=red | 1 0 1, 2 1 0 | a b",
     NULL},
    {"zip,label\n10,a\n9,b\n10,a\n",
     {.categorical = "zip"},
     "zip=9 zip=10 | 0 1, 1 0, 0 1 | a b a",
     NULL},
    {"ok,label\ntrue,a\nfalse,b\n", {0}, "ok=false ok=true | 0 1, 1 0 | a b", NULL},
    {"x,c,label\n1,Z\xc3\xbcrich,a\n2,\"B,\"\"C\"\"\",b\n",
     {0},
     "x c=B,\"C\" c=Z\xc3\xbcrich | 1 0 1, 2 1 0 | a b",
     NULL},
    {"x,c,label\n1,M\xfcller,a\n", {0}, NULL, "line 2, column \"c\": the name is not UTF-8"},
    {"x,label\n1,a\n", {.categorical = "colour"}, NULL, "no column is named \"colour\""},
    /* missing values */
    {"x,label\n1,a\n,b\n3,c\n", {0}, "x x=missing | 1 0, 2 1, 3 0 | a b c", NULL},
    {"x,label\n1,a\nNA,b\n3,c\n", {0}, "x x=missing | 1 0, 2 1, 3 0 | a b c", NULL},
    {"x,label\n1,a\n?,b\nnan,c\n", {0}, "x x=missing | 1 0, 1 1, 1 1 | a b c", NULL},
    {"c,x,label\nred,1,a\n,2,b\n", {0}, "c=red c=missing x | 1 0 1, 0 1 2 | a b", NULL},
    {"x,label\n1,a\n,b\n3,c\n", {.missing = FDS__MISSING_DROP}, "x | 1, 3 | a c", NULL},
    {"x,label\n1,a\n,b\n",
     {.missing = FDS__MISSING_ERROR},
     NULL,
     "line 3, column \"x\": the value is"},
    {"x,label\n1,a\n2,\n", {0}, NULL, "line 3, column \"label\": empty"},
    {"x,label\n1,a\n2,\n", {.missing = FDS__MISSING_DROP}, "x | 1 | a", NULL},
    {"x,y,label\n1,,a\n2,,b\n", {0}, "x | 1, 2 | a b", NULL},
    {"x,label,\n1,a,\n2,b,\n", {0}, "x | 1, 2 | a b", NULL},
    /* columns that are no features */
    {",x,label\n0,5,a\n1,6,b\n", {0}, "x | 5, 6 | a b", NULL},
    {"Unnamed: 0,x,label\n1,5,a\n2,6,b\n", {0}, "x | 5, 6 | a b", NULL},
    {"day,label\n2024-01-31,a\n2024-02-01,b\n", {0}, NULL, "\"2024-01-31\" is a date"},
    {"day,label\n31.01.2024,a\n1.2.2024,b\n", {0}, NULL, "is a date; turn dates into numbers"},
    {"day,label\n1/31/24 10:00,a\n2/1/24 11:30,b\n",
     {0},
     NULL,
     "or leave the column out with --drop"},
    {"id,x,label\nA7,5,a\nA8,6,b\n", {.id_column = "id"}, "x | 5, 6 | a b | A7, A8", NULL},
    {"id,x,label\nA7,5,a\nA7,6,b\n", {.id_column = "id"}, NULL, "two rows have the id \"A7\""},
    {"x,y,label\n1,2,a\n", {.drop = "y, x"}, NULL, "no columns with values"},
    {"x,y,label\n1,2,a\n", {.drop = "z"}, NULL, "no column is named \"z\""},
    {"\"x,y\",x,z,label\n1,2,3,a\n", {.drop = "x,y,z"}, "x | 2 | a", NULL},
    {"\"x,y\",x,z,label\n1,2,3,a\n", {.drop = "z,x"}, "x,y | 1 | a", NULL},
    {"t,label\nmissing,a\n,b\n", {0}, "t=missing t=(missing) | 1 0, 0 1 | a b", NULL},
    {"x,y,x,label\n1,2,3,a\n", {.drop = "x,x"}, "y | 2 | a", NULL},
    /* headers and lines */
    {"x,x,label\n1,2,a\n", {0}, NULL, "two columns are named \"x\"; rename one"},
    {"x,label,,\n1,a,,\n2,b,,\n", {0}, "x | 1, 2 | a b", NULL},
    {"x,Label\n1,a\n", {0}, NULL, "did you mean \"Label\"?"},
    {"5.1,3.5,0\n4.9,3.0,1\n", {0}, NULL, "the columns are \"5.1\", \"3.5\", \"0\""},
    {"x,label\r1,a\r2,b\r", {0}, "x | 1, 2 | a b", NULL},
    {"\n\nx,label\n\n1,a\n\n", {0}, "x | 1 | a", NULL},
    {"\xff\xfex\0,\0", {0}, NULL, "the text is UTF-16; save it as \"CSV UTF-8\""},
    {"x,label\n1,a,\n2,b,\n", {0}, NULL, "line 2: 3 fields, but the header has 2"},
    {"x,label,provider\n1,a,Shop 1\n2,b,shop 1\n", {0}, "x | 1, 2 | a b | Shop 1, shop 1", NULL},
    {"", {0}, NULL, "empty"},
    {"x,label\n\"1\n2\",a\n3,b\n4,b\n", {0}, NULL, "line 2, column \"x\""},
};

static void oddities_are_read_correctly_or_refused_with_advice(void **state) {
    (void)state;
    char text[1024];
    for (size_t i = 0; i < COUNT(oddities); i++) {
        const oddity *o = &oddities[i];
        fds_dataset *train, *test;
        put_text("a.csv", o->text);
        if (o->advice) {
            open_fails(scratch_path("a.csv"), &o->options, FDS_ERR_FORMAT, o->advice);
            continue;
        }
        open_ok(scratch_path("a.csv"), &o->options, &train, &test);
        assert_string_equal(describe(train, text, sizeof text), o->read);
        fds_dataset_free(train);
    }
    print_message("# %zu oddities\n", COUNT(oddities));
}

/* A file of rows lines: "i mod classes" where a line has %d. */
static void put_rows(const char *header, const char *line, int rows, int modulus) {
    char *text = need((size_t)rows * 64 + 256, 1);
    size_t used = (size_t)sprintf(text, "%s\n", header);
    for (int i = 0; i < rows; i++) {
        used += (size_t)sprintf(text + used, line, i % modulus, i % 2);
        used += (size_t)sprintf(text + used, "\n");
    }
    put_file("a.csv", text, used);
    free(text);
}

static void columns_of_which_nearly_all_values_differ_are_refused(void **state) {
    (void)state;
    put_rows("name,x,label", "n%d,1,%d", 100, 100);
    open_fails(scratch_path("a.csv"), NULL, FDS_ERR_FORMAT,
               "column \"name\" is text with 100 different values in 100 rows");
    open_fails(scratch_path("a.csv"), NULL, FDS_ERR_FORMAT, "carry it along with --id");
    put_rows("label,x", "%d.5,%d", 100, 100);
    open_fails(scratch_path("a.csv"), NULL, FDS_ERR_FORMAT,
               "column \"label\" has 100 different values in 100 rows: these are no classes");
}

/* 200 rows: levels with under two of them are rare. */
static void rare_levels_are_joined(void **state) {
    (void)state;
    fds_dataset *train, *test;
    char *text = need(8192, 1);
    size_t used = (size_t)sprintf(text, "c,label\nonce,a\nalone,b\n");
    for (int i = 0; i < 198; i++)
        used += (size_t)sprintf(text + used, "%s,a\n", i % 2 ? "red" : "blue");
    put_folder("d");
    put_file("d/train.csv", text, used);
    put_text("d/test.csv", "c,label\nnever seen,a\nred,b\n");
    free(text);
    open_ok(scratch_path("d"), NULL, &train, &test);
    expect_shape(train, 200, 3, 1, 1);
    assert_string_equal(fds_dataset_feature_name(train, 2), "c=other");
    assert_true(train->floats[2] == 1 && train->floats[5] == 1);
    assert_true(test->floats[2] == 1 && test->floats[4] == 1 && test->floats[5] == 0);
    fds_dataset_free(train);
    fds_dataset_free(test);
}

/* Levels and means come from the training table; its columns may be in another order, and more. */
static void a_test_table_is_prepared_as_the_training_table(void **state) {
    (void)state;
    fds_dataset *train, *test;
    char text[512];
    put_folder("d");
    put_text("d/train.csv", "x,c,label\n1,red,a\n,blue,b\n3,red,a\n");
    put_text("d/test.csv", "more;label;c;x\n9;b;green;\n9;a;red;7,5\n");
    open_ok(scratch_path("d"), NULL, &train, &test);
    assert_string_equal(describe(train, text, sizeof text),
                        "x x=missing c=blue c=red | 1 0 0 1, 2 1 1 0, 3 0 0 1 | a b a");
    assert_string_equal(describe(test, text, sizeof text),
                        "x x=missing c=blue c=red | 2 1 0 0, 7.5 0 0 1 | b a");
    fds_dataset_free(train);
    fds_dataset_free(test);
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path("d/test.csv"));
    fds__data_options options = {.test_file = path};
    open_ok(scratch_path("d/train.csv"), &options, &train, &test);
    assert_int_equal(test->count, 2);
    fds_dataset_free(train);
    fds_dataset_free(test);
    put_text("d/test.csv", "x,label\n1,a\n");
    open_fails(scratch_path("d"), NULL, FDS_ERR_FORMAT, "no column is named \"c\"");
    put_text("d/train.csv", "x,c,label,provider,id\n1,red,a,P,7\n2,blue,b,Q,8\n");
    put_text("d/test.csv", "x,c,label\n1,red,a\n"); /* whose samples need no owner, nor an id */
    fds__data_options named = {.id_column = "id"};
    open_ok(scratch_path("d"), &named, &train, &test);
    assert_null(test->provider_ids);
    assert_null(test->sample_names);
    fds_dataset_free(train);
    fds_dataset_free(test);
    put_text("d/train.csv", "x,c,label\n1,red,a\n2,blue,b\n");
    put_text("d/test.csv", "x,c,label\nmany,red,a\n");
    open_fails(scratch_path("d"), NULL, FDS_ERR_FORMAT,
               "test.csv: line 2, column \"x\": \"many\" is not a finite number");
}

/* Blank lines, line breaks within quotes and rows left out do not shift the numbers. */
static void samples_know_their_lines(void **state) {
    (void)state;
    fds_dataset *train, *test;
    const fds__data_options options = {.missing = FDS__MISSING_DROP, .drop = "note"};
    put_text("a.csv", "x,note,label\n1,a,p\n\n2,\"two\nlines\",q\n,c,p\n4,d,q\n");
    open_ok(scratch_path("a.csv"), &options, &train, &test);
    static const uint32_t lines[] = {2, 4, 7};
    assert_int_equal(train->count, COUNT(lines));
    assert_memory_equal(train->sample_lines, lines, sizeof lines);
    fds_dataset_free(train);
}

/* ---- owners ---- */

static void expect_owner(const fds_dataset *ds, size_t sample, const char *name) {
    assert_string_equal(fds_dataset_provider_name(ds, ds->provider_ids[sample]), name);
}

static void owners_by_number_and_by_id(void **state) {
    (void)state;
    fds_dataset *train, *test;
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path("owners.csv"));
    fds__data_options options = {.owners_file = path, .id_column = "id"};
    put_text("a.csv", "id,x,label\nr7,5,a\nr8,6,b\nr9,7,b\n");
    static const char *const files[] = {"sample,provider\n0,North\n1,South\n2,North\n",
                                        "2,North\n1,South\n0,North\n1,South\n",
                                        "row;owner\nr9;North\nr7;North\nr8;\"South\"\n"};
    for (size_t f = 0; f < COUNT(files); f++) {
        put_text("owners.csv", files[f]);
        open_ok(scratch_path("a.csv"), &options, &train, &test);
        assert_int_equal(train->providers, 2);
        expect_owner(train, 0, "North");
        expect_owner(train, 1, "South");
        expect_owner(train, 2, "North");
        fds_dataset_free(train);
    }
    static const struct {
        const char *text, *advice;
    } mistakes[] = {
        {"0,North\n1,South\n", "1 of 3 training samples have no provider, the first is r9"},
        {"0,North\n1,South\n3,North\n", "line 3: \"3\" is no training sample of"},
        {"0,North\n1,South\n3,North\n", "by number, 0 to 2, or by name, such as \"r7\""},
        {"0,North\n0,South\n",
         "line 2: \"0\" belongs to \"South\", but line 1 gives it to \"North\""},
        {"0,North,x\n", "line 1: 3 fields; a line must have two"},
        {"0,\n1,South\n", "line 1: no provider after the sample"},
        {"0,No\x01rth\n", "control character"},
        {"", "3 of 3 training samples have no provider"},
    };
    for (size_t m = 0; m < COUNT(mistakes); m++) {
        put_text("owners.csv", mistakes[m].text);
        open_fails(scratch_path("a.csv"), &options, FDS_ERR_FORMAT, mistakes[m].advice);
    }
    put_text("a.csv", "x,label,provider\n5,a,me\n");
    fds__data_options both = {.owners_file = path};
    open_fails(scratch_path("a.csv"), &both, FDS_ERR_USAGE, "names the providers of its samples");
}

/* Who writes a list of owners need not know which rows have missing values. */
static void owners_of_rows_that_are_left_out_are_ignored(void **state) {
    (void)state;
    fds_dataset *train, *test;
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path("owners.csv"));
    fds__data_options options = {
        .owners_file = path, .id_column = "id", .missing = FDS__MISSING_DROP};
    put_text("a.csv", "id,x,label\nr5,,a\nr6,4,a\nr7,5,a\n,6,b\nr8,NA,b\nr9,7,b\n");
    static const char *const files[] = {
        "id,owner\nr5,East\nr6,South\nr7,North\nr8,South\nr9,East\n",
        "r8,East\nr9,East\nr7,North\nr6,South\n",
        "row,owner\n0,East\n1,South\n2,North\n3,South\n4,West\n5,East\n",
        "r9,East\n2,North\n1,South\n",
    };
    for (size_t f = 0; f < COUNT(files); f++) {
        put_text("owners.csv", files[f]);
        open_ok(scratch_path("a.csv"), &options, &train, &test);
        assert_int_equal(train->count, 3);
        assert_int_equal(train->providers, 3);
        expect_owner(train, 0, "South");
        expect_owner(train, 1, "North");
        expect_owner(train, 2, "East");
        fds_dataset_free(train);
    }
    put_text("owners.csv", "1,South\n2,North\n6,East\n");
    open_fails(scratch_path("a.csv"), &options, FDS_ERR_FORMAT, "by number, 0 to 5");
    put_text("owners.csv", "1,South\n2,North\nr5,East\n");
    open_fails(scratch_path("a.csv"), &options, FDS_ERR_FORMAT, "the first is r9");
    options.id_column = NULL;
    options.drop = "id";
    put_text("owners.csv", "1,South\n2,North\n0,East\n3,East\n");
    open_fails(scratch_path("a.csv"), &options, FDS_ERR_FORMAT, "the first is sample 5");
}

/* An array has an entry for each sample, or for each row. */
static void an_array_of_owners_may_have_rows_that_are_left_out(void **state) {
    (void)state;
    fds_dataset *train, *test;
    char path[512];
    static const char head[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }";
    snprintf(path, sizeof path, "%s", scratch_path("owners.npy"));
    const fds__data_options options = {.owners_file = path, .missing = FDS__MISSING_DROP};
    put_text("a.csv", "x,label\n,a\n4,a\n5,a\n,b\n7,b\n");
    static const char *const entries[] = {"\x09\x01\x02\x09\x01", "\x01\x02\x01"};
    for (size_t f = 0; f < COUNT(entries); f++) {
        char file[128] = "\x93NUMPY\x01";
        int rows = (int)strlen(entries[f]);
        int used = snprintf(file + 10, 100, head, rows);
        file[8] = (char)used;
        memcpy(file + 10 + used, entries[f], (size_t)rows);
        put_file("owners.npy", file, (size_t)(10 + used + rows));
        open_ok(scratch_path("a.csv"), &options, &train, &test);
        assert_int_equal(train->providers, 2);
        expect_owner(train, 0, "1");
        expect_owner(train, 1, "2");
        expect_owner(train, 2, "1");
        fds_dataset_free(train);
    }
}

/* ---- lists of columns ---- */

static void names_with_commas_are_quoted_in_lists(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_text("a.csv", "a,b,\"a,b\",\"\"\"c\",d,label\n1,2,3,4,5,x\n1,2,3,4,5,y\n");
    static const struct {
        const char *drop, *first;
        size_t left;
    } lists[] = {
        {"\"a,b\"", "a", 4},       {"a,b", "a", 4}, /* the longest name */
        {"\"a\",\"b\"", "a,b", 3}, {"\"a\" , b", "a,b", 3},
        {"\"a,b\",d,a", "b", 2},   {"d,\"a,b\"", "a", 3},
        {"a,b,\"\"\"c\"", "a", 3}, {"\"c", "a", 4}, /* not closed: a name as it is */
    };
    for (size_t i = 0; i < COUNT(lists); i++) {
        const fds__data_options options = {.drop = lists[i].drop};
        open_ok(scratch_path("a.csv"), &options, &train, &test);
        expect_shape(train, 2, (uint32_t)lists[i].left, 1, 1);
        assert_string_equal(fds_dataset_feature_name(train, 0), lists[i].first);
        fds_dataset_free(train);
    }
    const fds__data_options unknown = {.drop = "\"a,c\""};
    open_fails(scratch_path("a.csv"), &unknown, FDS_ERR_FORMAT, "no column is named \"a,c\"");
}

/* ---- names of features ---- */

static void joined_and_missing_levels_are_told_from_levels_of_that_name(void **state) {
    (void)state;
    fds_dataset *train, *test;
    static const char *const names[] = {"c=(other)", "c=missing", "c=other", "c=((other))",
                                        "c=(missing)"};
    static const char *const levels[] = {"(other)", "missing", "other"};
    char *text = need(8192, 1);
    size_t used = (size_t)sprintf(text, "c,label\nonce,a\n,b\n");
    for (int i = 0; i < 297; i++)
        used += (size_t)sprintf(text + used, "%s,a\n", levels[i % 3]);
    put_file("a.csv", text, used);
    free(text);
    open_ok(scratch_path("a.csv"), NULL, &train, &test);
    expect_shape(train, 299, COUNT(names), 1, 1);
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(fds_dataset_feature_name(train, i), names[i]);
    assert_true(train->floats[3] == 1 && train->floats[5 + 4] == 1 && train->floats[10] == 1);
    fds_dataset_free(train);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(oddities_are_read_correctly_or_refused_with_advice),
        TEST(columns_of_which_nearly_all_values_differ_are_refused),
        TEST(rare_levels_are_joined),
        TEST(a_test_table_is_prepared_as_the_training_table),
        TEST(samples_know_their_lines),
        TEST(owners_by_number_and_by_id),
        TEST(owners_of_rows_that_are_left_out_are_ignored),
        TEST(an_array_of_owners_may_have_rows_that_are_left_out),
        TEST(names_with_commas_are_quoted_in_lists),
        TEST(joined_and_missing_levels_are_told_from_levels_of_that_name),
    };
    return cmocka_run_group_tests_name("data/tables", tests, NULL, NULL);
}
