/* SPDX-License-Identifier: Apache-2.0
 * The methods of a bench by name, and the mistakes in its settings that are told before any work.
 */
#include "../base/scratch.h"
#include "eval/eval.h"

#include <ctype.h>
#include <math.h>

static eval_method found(const char *name) {
    eval_method m;
    fds_error err;
    memset(&m, 0xa5, sizeof m);
    expect_ok(eval_method_find(name, &m, &err), &err);
    assert_string_equal(m.name, name);
    return m;
}

/* ---- names ---- */

static void the_rows_are_those_of_the_documents(void **state) {
    (void)state;
    static const struct {
        const char *name, *title, *kind;
        bool is_fit, is_per_sample, is_converged;
    } rows[] = {
        {"fds", "Fast-DataShapley", "ours", true, true, true},
        {"afds", "AFDS", "ours", true, true, false},
        {"gfds", "GFDS", "ours", true, true, false},
        {"gfds+", "GFDS+", "ours", true, true, false},
        {"bank", "Bank of sub-models", "beyond", false, true, false},
        {"ls", "Least squares", "beyond", false, true, false},
        {"loo", "Leave one out", "paper", false, false, false},
        {"tmc", "TMC-Shapley (DataShapley)", "paper", false, false, false},
        {"group-testing", "Group testing", "paper", false, false, false},
        {"cs-shapley", "CS-Shapley", "paper", false, false, false},
        {"freeshap", "FreeShap", "paper", false, false, false},
        {"freeshap/sample", "FreeShap, per sample", "other", false, true, false},
        {"knn:5/sample", "5 nearest neighbours, per sample", "other", false, true, false},
        {"same-label", "Same label first", "control", false, true, false},
        {"random", "Random order", "control", false, true, false},
    };
    const char *const *names = fds_bench_methods();
    for (size_t i = 0; i < COUNT(rows); i++) {
        eval_method m = found(rows[i].name);
        assert_string_equal(names[i], rows[i].name);
        assert_string_equal(m.title, rows[i].title);
        assert_string_equal(report_kind_name(m.kind), rows[i].kind);
        assert_int_equal(m.is_fit, rows[i].is_fit);
        assert_int_equal(m.is_per_sample, rows[i].is_per_sample);
        assert_int_equal(m.is_converged, rows[i].is_converged);
    }
    assert_null(names[COUNT(rows)]);
}

static void every_baseline_is_a_method_with_and_without_sample(void **state) {
    (void)state;
    static const char *const others[][2] = {
        {"gshapley", "G-Shapley"},
        {"banzhaf", "Data Banzhaf"},
        {"ame", "Average marginal effects, by Lasso"},
        {"knn:1", "1 nearest neighbour"},
        {"knn:12", "12 nearest neighbours"},
        {"knn:7@model", "7 nearest neighbours, of features"},
        {"beta:4,1", "Beta Shapley (4,1)"},
        {"beta:1.5,16", "Beta Shapley (1.5,16)"},
    };
    for (size_t i = 0; i < COUNT(others); i++) {
        char name[64], title[80];
        eval_method m = found(others[i][0]);
        assert_string_equal(m.title, others[i][1]);
        assert_int_equal(m.kind, REPORT_OTHER);
        assert_false(m.is_per_sample);
        snprintf(name, sizeof name, "%s/sample", others[i][0]);
        snprintf(title, sizeof title, "%s, per sample", others[i][1]);
        m = found(name);
        assert_string_equal(m.base, others[i][0]);
        assert_string_equal(m.title, title);
        assert_true(m.is_per_sample && !m.is_fit && !m.is_converged);
    }
    assert_int_equal(found("tmc/sample").kind, REPORT_OTHER); /* not the paper's setting */
    for (const char *const *name = fds_baseline_methods(); *name; name++)
        if (!strchr(*name, ':')) /* a title of its own, or what it computes */
            assert_true(isupper((unsigned char)found(*name).title[0]));
}

static void what_cannot_be_is_refused_with_the_reason(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"shapley", "there is no method \"shapley\"; there are fds, afds, gfds, gfds+"},
        {"shapley", ", random, gshapley, knn:K, banzhaf, ame, beta:A,B"},
        {"", "there is no method"},
        {"/sample", "there is no method"},
        {"fds/samples", "there is no method"},
        {"FDS", "there is no method"},
        {"exact", "there is no method"},
        {"cs-shapley/sample", "use accuracy; name it \"cs-shapley\""},
        {"afds/sample", "afds has values for each test sample in any case; name it \"afds\""},
        {"ls/sample", "name it \"ls\""},
        {"bank/sample", "name it \"bank\""},
        {"same-label/sample", "name it \"same-label\""},
        {"knn", "for example knn:5"},
        {"knn:0/sample", "for example knn:5"},
        {"beta:4", "for example beta:4,1"},
        {"a name that is longer than any name of a method can ever be/sample", "there is no"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        eval_method m = {.title = "untouched"};
        fds_error err = {0};
        assert_int_equal(eval_method_find(wrong[i][0], &m, &err), FDS_ERR_USAGE);
        assert_int_equal(err.status, FDS_ERR_USAGE);
        expect_in(err.text, wrong[i][1]);
        assert_string_equal(m.title, "untouched");
        assert_int_equal(eval_method_find(wrong[i][0], &m, NULL), FDS_ERR_USAGE);
    }
}

/* ---- settings ---- */

static void the_defaults_have_the_papers_shares(void **state) {
    (void)state;
    fds__bench_params p = fds__bench_params_default();
    fds_error err;
    expect_ok(fds__bench_check(&p, &err), &err);
    assert_null(p.methods);
    for (size_t i = 0; i < REPORT_PAPER_SHARES; i++)
        assert_true(p.shares[i] == report_paper_shares[i]);
    assert_true(p.shares[p.share_count - 1] == 1);
    assert_int_equal(p.permutations, 40);
    assert_string_equal(p.network, "lenet5");
}

static void expect_mistake(const fds__bench_params *p, fds_status wanted, const char *part) {
    fds_error err = {0};
    fds_status got = fds__bench_check(p, &err);
    if (got != wanted || err.status != wanted)
        fail_msg("%s, not %s: %s", fds_status_name(got), fds_status_name(wanted), err.text);
    expect_in(err.text, part);
}

static void mistakes_are_named_before_any_work(void **state) {
    (void)state;
    static const char *const none[] = {NULL}, *const twice[] = {"loo", "tmc", "loo", NULL};
    static const char *const unknown[] = {"loo", "lol", NULL};
    static const double zero[] = {0}, beyond[] = {0.5, 1.01}, falls[] = {0.5, 0.2}, nan[] = {NAN};
    const fds__bench_params good = fds__bench_params_default();
    fds__bench_params p;
#define MISTAKE(change, status, part) (p = good, change, expect_mistake(&p, status, part))
    MISTAKE(p.methods = none, FDS_ERR_USAGE, "no method is named");
    MISTAKE(p.methods = twice, FDS_ERR_USAGE, "\"loo\" is named twice");
    MISTAKE(p.methods = unknown, FDS_ERR_USAGE, "there is no method \"lol\"");
    MISTAKE(p.share_count = 0, FDS_ERR_USAGE, "no shares");
    MISTAKE(p.shares = NULL, FDS_ERR_USAGE, "no shares");
    MISTAKE((p.shares = zero, p.share_count = 1), FDS_ERR_USAGE, "share 0 of the players is 0");
    MISTAKE((p.shares = beyond, p.share_count = 2), FDS_ERR_USAGE,
            "share 1 of the players is 1.01");
    MISTAKE((p.shares = falls, p.share_count = 2), FDS_ERR_USAGE, "0.2 comes after 0.5");
    MISTAKE((p.shares = nan, p.share_count = 1), FDS_ERR_USAGE, "above 0 and at most 1");
    MISTAKE(p.explainer = "resnet", FDS_ERR_USAGE, "`explainer` must be mlp, cnn");
    MISTAKE(p.explainer = "bank", FDS_ERR_USAGE, "the bank is a method");
    MISTAKE(p.network = NULL, FDS_ERR_USAGE, "no network");
    MISTAKE(p.coalitions = 61, FDS_ERR_USAGE, "61 coalitions");
    MISTAKE(p.truth = 4001, FDS_ERR_USAGE, "4001 coalitions for the truth");
    MISTAKE(p.truth = (size_t)1 << 40, FDS_ERR_LIMIT, "at most");
    MISTAKE(p.permutations = 0, FDS_ERR_USAGE, "`permutations` must be from 1");
    MISTAKE(p.flipped = 1, FDS_ERR_USAGE, "from 0 to below 1");
    MISTAKE(p.flipped = -0.1, FDS_ERR_USAGE, "share -0.1");
    MISTAKE(p.flipped = NAN, FDS_ERR_USAGE, "from 0 to below 1");
#undef MISTAKE
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_are_those_of_the_documents),
        cmocka_unit_test(every_baseline_is_a_method_with_and_without_sample),
        cmocka_unit_test(what_cannot_be_is_refused_with_the_reason),
        cmocka_unit_test(the_defaults_have_the_papers_shares),
        cmocka_unit_test(mistakes_are_named_before_any_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
