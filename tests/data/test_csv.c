/* SPDX-License-Identifier: Apache-2.0
 * CSV: quotes, line ends, labels that are words or numbers, providers, errors with line and column.
 */
#include "fixture.h"

#include <locale.h>
#include <zlib.h>

static void expect_class(const fds_dataset *ds, size_t sample, const char *name) {
    assert_string_equal(fds_dataset_class_name(ds, ds->labels[sample]), name);
}

static void reads_features_labels_and_providers(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_text("a.csv", "height,label,provider,weight\n"
                      "25.1,cat,\"Clinic \"\"A\"\", Bonn\",-4.25e0\n"
                      "\" 61 \",dog,B,.5\n"
                      "+7,\"a,b c\",B,1e-3");
    open_ok(scratch_path("a.csv"), NULL, &train, &test);
    assert_null(test);
    expect_shape(train, 3, 2, 1, 1);
    fds__dataset_info info = fds__dataset_get_info(train);
    assert_false(info.is_image || info.is_bytes);
    assert_int_equal(info.classes, 3);
    assert_int_equal(info.providers, 2);
    expect_class(train, 0, "cat");
    expect_class(train, 1, "dog");
    expect_class(train, 2, "a,b c");
    assert_string_equal(fds_dataset_provider_name(train, info.provider_ids[2]), "B");
    assert_string_equal(fds_dataset_provider_name(train, info.provider_ids[0]),
                        "Clinic \"A\", Bonn");
    assert_string_equal(fds_dataset_provider_name(train, 2), "?");
    assert_string_equal(fds_dataset_feature_name(train, 0), "height");
    assert_string_equal(fds_dataset_feature_name(train, 1), "weight");
    assert_null(fds_dataset_feature_name(train, 2));
    static const float values[6] = {25.1f, -4.25f, 61.0f, 0.5f, 7.0f, 1e-3f};
    for (int i = 0; i < 6; i++)
        assert_true(train->floats[i] == values[i]);
    fds_dataset_free(train);
}

static void line_ends_blank_lines_and_byte_order_mark(void **state) {
    (void)state;
    static const char *const files[] = {"x,label\n1,0\n2,1\n",
                                        "x,label\r\n1,0\r\n2,1\r\n",
                                        "x,label\n1,0\n2,1",
                                        "x,label\r\n1,0\r\n2,1",
                                        "\xef\xbb\xbfx,label\n1,0\n2,1\n",
                                        "x,label\n\n1,0\n\r\n2,1\n\n\n",
                                        "\"x\",\"label\"\n\"1\",\"0\"\n\"2\",\"1\"",
                                        "\"x\",\"label\"\r\n\"1\",\"0\"\r\n\"2\",\"1\"\r\n"};
    for (size_t f = 0; f < COUNT(files); f++) {
        fds_dataset *train, *test;
        put_text("a.csv", files[f]);
        open_ok(scratch_path("a.csv"), NULL, &train, &test);
        expect_shape(train, 2, 1, 1, 1);
        assert_true(train->floats[0] == 1.0f && train->floats[1] == 2.0f);
        assert_int_equal(train->labels[1], 1);
        fds_dataset_free(train);
    }
}

static void whole_numbers_are_sorted_by_value_and_words_by_bytes(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_text("a.csv", "label,x\n10,0\n9,0\n0,0\n-3,0\n9,0\n");
    open_ok(scratch_path("a.csv"), NULL, &train, &test);
    static const char *const numbers[] = {"-3", "0", "9", "10"};
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(fds_dataset_class_name(train, i), numbers[i]);
    assert_int_equal(train->labels[0], 3);
    assert_int_equal(train->labels[4], 2);
    fds_dataset_free(train);
    put_text("a.csv", "label,x\n10,0\n9,0\nb,0\nB,0\n");
    open_ok(scratch_path("a.csv"), NULL, &train, &test);
    static const char *const words[] = {"10", "9", "B", "b"};
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(fds_dataset_class_name(train, i), words[i]);
    fds_dataset_free(train);
}

static void columns_are_chosen_by_name(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_text("a.csv", "label,species,owner,provider\n1,cat,me,7\n2,dog,you,8\n");
    fds__data_options options = {.label_column = "species", .provider_column = "owner"};
    open_ok(scratch_path("a.csv"), &options, &train, &test);
    expect_shape(train, 2, 2, 1, 1);
    expect_class(train, 1, "dog");
    assert_string_equal(fds_dataset_provider_name(train, 0), "me");
    assert_true(train->floats[0] == 1.0f && train->floats[1] == 7.0f);
    fds_dataset_free(train);
    options.provider_column = "nobody";
    open_fails(scratch_path("a.csv"), &options, FDS_ERR_FORMAT, "\"nobody\"");
    options.provider_column = "species";
    open_fails(scratch_path("a.csv"), &options, FDS_ERR_USAGE, "both label and provider");
    put_text("a.csv", "x,provider\n1,cat\n2,dog\n");
    fds__data_options provider_is_label = {.label_column = "provider"};
    open_ok(scratch_path("a.csv"), &provider_is_label, &train, &test);
    assert_int_equal(fds__dataset_get_info(train).providers, 0);
    fds_dataset_free(train);
}

static void a_folder_has_train_and_test_with_one_numbering(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_text("train.csv", "x,label,provider\n1,b,p2\n2,c,p1\n");
    put_text("test.csv", "x,label,provider\n3,a,p3\n4,c,p1\n");
    open_ok(scratch, NULL, &train, &test);
    assert_int_equal(fds__dataset_get_info(train).classes, 3);
    assert_int_equal(train->labels[0], 1);
    assert_int_equal(test->labels[0], 0);
    assert_int_equal(test->labels[1], 2);
    assert_int_equal(train->provider_ids[1], test->provider_ids[1]);
    fds_dataset_free(train);
    fds_dataset_free(test);
    put_text("test.csv", "y,label,provider\n3,a,p3\n");
    open_fails(scratch, NULL, FDS_ERR_FORMAT, "must have the same columns as");
    put_text("test.csv", "x,label,provider\n");
    open_fails(scratch, NULL, FDS_ERR_SHAPE, "no samples");
}

static void mistakes_are_named_by_line_and_column(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
        fds_status status;
    } mistakes[] = {
        {"", "empty; the first line must name the columns", FDS_ERR_FORMAT},
        {"a,b\n1,2\n", "no column is named \"label\"", FDS_ERR_FORMAT},
        {"label\na\n", "no columns with values", FDS_ERR_FORMAT},
        {"label,provider\na,b\n", "no columns with values", FDS_ERR_FORMAT},
        {"label,x,label\na,1,b\n", "two columns are named \"label\"", FDS_ERR_FORMAT},
        {"label,x\n", "no samples", FDS_ERR_SHAPE},
        {"label,x\na,1\nb\n", "line 3: 1 fields, but the header has 2", FDS_ERR_FORMAT},
        {"label,x\na,1,2\n", "line 2: 3 fields", FDS_ERR_FORMAT},
        {"label,x\n,1\n", "line 2, column \"label\": empty", FDS_ERR_FORMAT},
        {"label,x,provider\na,1,\n", "line 2, column \"provider\": empty", FDS_ERR_FORMAT},
        {"label,x\n\"a\n\n,1\n", "line 2: a quoted field is not closed", FDS_ERR_FORMAT},
        {"label,x\n\"a\"b,1\n", "line 2: byte 0x62 after a field", FDS_ERR_FORMAT},
        {"label,x\na\"b,1\n", "line 2: a quote inside a field", FDS_ERR_FORMAT},
        {"label,x\n\"two\nlines\",1\n", "line 2, column \"label\": the name has a control",
         FDS_ERR_FORMAT},
        {"label,x\na,1\n\x1b[31m,1\n", "line 3, column \"label\": the name has a control",
         FDS_ERR_FORMAT},
        {"label,x\n  ,1\n", "line 2, column \"label\": empty", FDS_ERR_FORMAT},
    };
    for (size_t m = 0; m < COUNT(mistakes); m++) {
        put_text("a.csv", mistakes[m].text);
        open_fails(scratch_path("a.csv"), NULL, mistakes[m].status, mistakes[m].part);
    }
    put_file("a.csv", "label,x\na,1\0\n", 13);
    open_fails(scratch_path("a.csv"), NULL, FDS_ERR_FORMAT, "byte 11: NUL");
}

/* In another encoding two names may become one on their way to a terminal or to JSON. */
static void names_that_are_not_utf8_are_refused(void **state) {
    (void)state;
    put_text("a.csv", "label,provider,x\na,M\xfcller,1\nb,M\xf6ller,1\n");
    open_fails(scratch_path("a.csv"), NULL, FDS_ERR_FORMAT,
               "a.csv: line 2, column \"provider\": the name is not UTF-8");
    open_fails(scratch_path("a.csv"), NULL, FDS_ERR_FORMAT, "iconv -f latin1 -t utf8");
    put_text("a.csv", "label,provider,x\nGr\xfcn,p,1\n");
    open_fails(scratch_path("a.csv"), NULL, FDS_ERR_FORMAT,
               "line 2, column \"label\": the name is");
    put_text("a.csv", "label,provider,gr\xf6\xdf"
                      "e\na,p,1\n");
    open_fails(scratch_path("a.csv"), NULL, FDS_ERR_FORMAT, "line 1, column 3: the name is not");
}

/* A name is its bytes without the white space around them: equal looks are not enough. */
static void names_are_trimmed_and_told_apart_by_their_bytes(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_text("a.csv",
             "label , provider,x\n"
             "a,A,1\na, A ,1\n\"\ta\",A\t,1\n"
             "a,a,1\na,\xce\x91,1\na,A\xe2\x80\x8b,1\na,M\xc3\xbcller,1\na,Mu\xcc\x88ller,1\n");
    open_ok(scratch_path("a.csv"), NULL, &train, &test);
    fds__dataset_info info = fds__dataset_get_info(train);
    assert_int_equal(info.classes, 1);
    assert_int_equal(info.providers, 6);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(fds_dataset_provider_name(train, info.provider_ids[i]), "A");
    fds_dataset_free(train);
}

static void numbers_do_not_depend_on_the_programs_locale(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_text("a.csv", "label,x\na,1.5\n");
    /* a locale with a decimal comma, where the machine has one */
    bool changed = setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "fr_FR.UTF-8");
    open_ok(scratch_path("a.csv"), NULL, &train, &test);
    assert_true(train->floats[0] == 1.5f);
    fds_dataset_free(train);
    if (changed)
        setlocale(LC_ALL, "C");
}

/* a.csv with the header and 65,536 lines, each with its number between before and after. */
static void put_many_lines(const char *header, const char *before, const char *after) {
    size_t used = 0, size = 2 << 20;
    char *text = malloc(size);
    assert_non_null(text);
    used += (size_t)snprintf(text, size, "%s\n", header);
    for (int i = 0; i < 65536; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%d%s\n", before, i, after);
    put_file("a.csv", text, used);
    free(text);
}

static void more_than_65535_classes_are_refused(void **state) {
    (void)state;
    put_many_lines("label,x", "", ",1");
    open_fails(scratch_path("a.csv"), NULL, FDS_ERR_LIMIT, "65535");
}

static void more_than_65535_providers_are_read(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_many_lines("label,provider,x", "a,", ",1");
    open_ok(scratch_path("a.csv"), NULL, &train, &test);
    assert_int_equal(fds__dataset_get_info(train).providers, 65536);
    assert_int_equal(train->provider_ids[65535], 65535);
    assert_string_equal(fds_dataset_provider_name(train, 65535), "65535");
    fds_dataset_free(train);
}

/* Not while the file is read: its lines are fewer bytes than the file. */
static bool stop_at_lines(void *user, const fds_progress *progress) {
    return progress->total < *(size_t *)user;
}

static void reading_a_large_table_can_be_cancelled(void **state) {
    (void)state;
    size_t used = 0, size = FDS__READ_STEP + (4 << 20);
    char *text = need(size + 64, 1);
    used += (size_t)sprintf(text, "label,x\n");
    while (used < size)
        used += (size_t)sprintf(text + used, "a,%zu\n", used);
    put_file("a.csv", text, used);
    free(text);
    fds_events events = {.progress = stop_at_lines, .user = &used};
    fds_dataset *train = NULL;
    fds_error err = {0};
    assert_int_equal(fds__data_open(scratch_path("a.csv"), NULL, &events, &train, NULL, &err),
                     FDS_ERR_CANCELLED);
    expect_in(err.text, "read: cancelled after");
    assert_null(train);
}

/* mode: "wb", or "ab" for one more member behind those that the file has. */
static void put_gzip_as(const char *name, const char *text, const char *mode) {
    gzFile file = gzopen(scratch_path(name), mode);
    assert_non_null(file);
    assert_int_equal(gzputs(file, text), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

static void put_gzip(const char *name, const char *text) { put_gzip_as(name, text, "wb"); }

static void a_folder_may_have_its_tables_packed(void **state) {
    (void)state;
    fds_dataset *train, *test;
    put_gzip("train.csv.gz", "x,label\n1,b\n");
    put_gzip_as("train.csv.gz", "2,c\n", "ab");
    open_ok(scratch, NULL, &train, &test);
    expect_shape(train, 2, 1, 1, 1);
    assert_null(test);
    fds_dataset_free(train);
    put_gzip("test.csv.gz", "x,label\n3,a\n");
    put_text("classes.txt", "\n"); /* of no meaning beside CSV */
    open_ok(scratch, NULL, &train, &test);
    expect_shape(test, 1, 1, 1, 1);
    assert_string_equal(fds_dataset_class_name(train, 0), "a");
    fds_dataset_free(train);
    fds_dataset_free(test);
}

/* "x,label" and the lines "1,a" to "6,b", as the program zstd packs them. */
static void tables_packed_by_zstandard_are_read_if_its_library_was_there(void **state) {
    (void)state;
    static const char packed[] =
        "\x28\xb5\x2f\xfd\x24\x20\x01\x01\x00\x78\x2c\x6c\x61\x62\x65\x6c\x0a\x31\x2c\x61"
        "\x0a\x32\x2c\x62\x0a\x33\x2c\x61\x0a\x34\x2c\x62\x0a\x35\x2c\x61\x0a\x36\x2c\x62"
        "\x0a\xf8\x23\xcf\x1b";
#ifdef FDS_ZSTD
    fds_dataset *train, *test;
    put_file("a.csv.zst", packed, sizeof packed - 1);
    open_ok(scratch_path("a.csv.zst"), NULL, &train, &test);
    expect_shape(train, 6, 1, 1, 1);
    assert_true(train->floats[5] == 6);
    fds_dataset_free(train);
    put_file("a.csv.zst", packed, 20);
    open_fails(scratch_path("a.csv.zst"), NULL, FDS_ERR_FORMAT, "zstd data is cut off after 20");
    char damaged[sizeof packed];
    memcpy(damaged, packed, sizeof packed);
    damaged[sizeof packed - 2] ^= 1; /* of its checksum */
    put_file("a.csv.zst", damaged, sizeof packed - 1);
    open_fails(scratch_path("a.csv.zst"), NULL, FDS_ERR_FORMAT, "zstd data is damaged");
#else
    put_file("a.csv.zst", packed, sizeof packed - 1);
    open_fails(scratch_path("a.csv.zst"), NULL, FDS_ERR_UNSUPPORTED, "built without Zstandard");
#endif
}

static void options_of_other_formats_are_refused(void **state) {
    (void)state;
    fds__data_options label = {.label_column = "y"}, provider = {.provider_column = "y"};
    fds__data_options labels = {.labels_file = "y.npy"};
    put_text("train.csv", "x,label\n1,b\n");
    open_fails(scratch, &labels, FDS_ERR_USAGE, "--labels is only for a single NPY file");
    open_fails(scratch_path("train.csv"), &labels, FDS_ERR_USAGE,
               "--labels is only for a single NPY");
    open_fails(kept_path("mnist"), &labels, FDS_ERR_USAGE, "--labels");
    open_fails(kept_path("mnist"), &label, FDS_ERR_USAGE, "--label is only for CSV data");
    open_fails(kept_path("mnist"), &provider, FDS_ERR_USAGE, "--provider is only for CSV data");
    open_fails(kept_path("npy/nchw_u1.npy"), &label, FDS_ERR_USAGE, "--label is only for CSV data");
    put_cifar("a.bin", 0, 1);
    open_fails(scratch_path("a.bin"), &provider, FDS_ERR_USAGE, "--provider is only for CSV data");
    put_text("a.txt", "x,label\n1,b\n");
    open_fails(scratch_path("a.txt"), &label, FDS_ERR_FORMAT, "unknown format");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(reads_features_labels_and_providers),
        TEST(line_ends_blank_lines_and_byte_order_mark),
        TEST(whole_numbers_are_sorted_by_value_and_words_by_bytes),
        TEST(columns_are_chosen_by_name),
        TEST(a_folder_has_train_and_test_with_one_numbering),
        TEST(mistakes_are_named_by_line_and_column),
        TEST(names_that_are_not_utf8_are_refused),
        TEST(names_are_trimmed_and_told_apart_by_their_bytes),
        TEST(numbers_do_not_depend_on_the_programs_locale),
        TEST(more_than_65535_classes_are_refused),
        TEST(more_than_65535_providers_are_read),
        TEST(reading_a_large_table_can_be_cancelled),
        TEST(a_folder_may_have_its_tables_packed),
        TEST(tables_packed_by_zstandard_are_read_if_its_library_was_there),
        TEST(options_of_other_formats_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
