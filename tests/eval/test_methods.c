/* SPDX-License-Identifier: Apache-2.0
 * The methods of a benchmark by name, and the lists that its parameters give as texts.
 */
#include "../base/scratch.h"
#include "eval/eval.h"

#include <ctype.h>

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
        {"shapley", ", random, gshapley, knn:K, tknn:T, banzhaf, ame, beta:A,B"},
        {"", "there is no method"},
        {"/sample", "there is no method"},
        {"fds/samples", "there is no method"},
        {"FDS", "there is no method"},
        {"exact", "there is no method"},
        {"cs-shapley/sample", "use accuracy; name it \"cs-shapley\""},
        {"afds/sample", "afds always has values for each test sample; name it \"afds\""},
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

/* ---- lists ---- */

static fds_params params_of(const char *methods, const char *remove) {
    fds_params p = fds__params_default(FDS__JOB_BENCH);
    p.methods = methods;
    p.remove = remove;
    return p;
}

static void texts_become_lists(void **state) {
    (void)state;
    static const char *const names[] = {"afds", "beta:4,1", "tmc", "beta:1.5,16/sample", "random"};
    fds_params p =
        params_of(" afds,beta:4,1, tmc beta:1.5,16/sample,random,", "5,10,15,20,40.5,100");
    static const double shares[] = {0.05, 0.1, 0.15, 0.2, 0.405, 1};
    eval_lists lists;
    fds_error err;
    expect_ok(eval_lists_read(&p, &lists, &err), &err);
    assert_int_equal(lists.method_count, COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(lists.methods[i].name, names[i]);
    assert_int_equal(lists.share_count, COUNT(shares));
    for (size_t i = 0; i < COUNT(shares); i++)
        assert_true(lists.shares[i] == shares[i]);
    for (size_t i = 0; i < REPORT_PAPER_SHARES; i++)
        assert_true(lists.shares[i] == report_paper_shares[i]);
    assert_true(eval_has_method(&lists, "beta:4,1") && !eval_has_method(&lists, "beta:4"));
    p.methods = NULL;
    expect_ok(eval_lists_read(&p, &lists, &err), &err);
    for (size_t i = 0; i < lists.method_count; i++)
        assert_string_equal(lists.methods[i].name, fds_bench_methods()[i]);
    assert_null(fds_bench_methods()[lists.method_count]);
}

static void mistakes_are_named_before_any_work(void **state) {
    (void)state;
    static const char *const wrong[][3] = {
        {"", "5", "`methods` names none"},
        {", ,", "5", "`methods` names none"},
        {"loo,tmc,loo", "5", "\"loo\" is named twice"},
        {"loo,lol", "5", "there is no method \"lol\""},
        {"beta:4,1,2", "5", "for example beta:4,1"},
        {"loo", "", "above 0"},
        {"loo", "0", "above 0"},
        {"loo", "50,101", "at most 100"},
        {"loo", "50,20", "rising"},
        {"loo", "5,,6", "separated by commas"},
        {"loo", "nan", "rising"},
        {"loo", "5 10", "for example 5,10,20 (got 5 10)"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fds_params p = params_of(wrong[i][0], wrong[i][1]);
        eval_lists lists;
        fds_error err = {0};
        assert_int_equal(eval_lists_read(&p, &lists, &err), FDS_ERR_USAGE);
        expect_in(err.text, wrong[i][2]);
    }
}

static void lists_have_a_limit(void **state) {
    (void)state;
    char methods[2000] = "", remove[2000] = "";
    eval_lists lists;
    fds_error err;
    for (int i = 0; i < EVAL_MOST; i++) {
        snprintf(methods + strlen(methods), 32, "knn:%d,", i + 1);
        snprintf(remove + strlen(remove), 32, "%d,", i + 1);
    }
    fds_params p = params_of(methods, remove);
    expect_ok(eval_lists_read(&p, &lists, &err), &err);
    assert_true(lists.method_count == EVAL_MOST && lists.share_count == EVAL_MOST);
    strcat(remove, "100");
    assert_int_equal(eval_lists_read(&p, &lists, &err), FDS_ERR_USAGE);
    expect_in(err.text, "up to 64");
    strcat(methods, "loo");
    assert_int_equal(eval_lists_read(&p, &lists, &err), FDS_ERR_USAGE);
    expect_in(err.text, "`methods` must be at most 64");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_are_those_of_the_documents),
        cmocka_unit_test(every_baseline_is_a_method_with_and_without_sample),
        cmocka_unit_test(what_cannot_be_is_refused_with_the_reason),
        cmocka_unit_test(texts_become_lists),
        cmocka_unit_test(mistakes_are_named_before_any_work),
        cmocka_unit_test(lists_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
