/* SPDX-License-Identifier: Apache-2.0
 * Settings of a fit: the four methods are the paper's, every mistake is named before any work, and
 * every game, small or large, has some validation coalitions and inputs, and not all of them. */
#include "fixture.h"

static fds_params default_of(const char *method) {
    fds_params p;
    fds_error err;
    memset(&p, 0xa5, sizeof p);
    expect_ok(fds__fit_default(method, &p, &err), &err);
    return p;
}

/* ---- defaults ---- */

static void the_methods_are_the_papers(void **state) {
    (void)state;
    static const struct {
        const char *name, *kind;
        fds_sampler sampler;
        bool is_by_group;
    } wanted[] = {{"fds", "retrain", FDS_SAMPLER_LEVERAGE, false},
                  {"afds", "retrain:10", FDS_SAMPLER_LEVERAGE, false},
                  {"gfds", "retrain:10", FDS_SAMPLER_GFDS, false},
                  {"gfds+", "retrain:10", FDS_SAMPLER_GFDS_PLUS, true}};
    for (size_t i = 0; i < COUNT(wanted); i++) {
        task t = task_make(wanted[i].name);
        t.params = default_of(wanted[i].name);
        assert_true(t.params.lr == 1e-4 && t.params.beta == 10);
        fds__fit_settings s = settled(&t);
        assert_string_equal(s.method, wanted[i].name);
        assert_string_equal(s.kind, wanted[i].kind);
        assert_string_equal(s.utility.network, "mlp"); /* of feature vectors */
        assert_int_equal(s.utility.train.optimizer, FDS_OPTIMIZER_ADAM);
        assert_int_equal(s.sampler, wanted[i].sampler);
        assert_int_equal(s.explainer.is_by_group, wanted[i].is_by_group);
        assert_int_equal(s.explainer.objective, FDS__OBJECTIVE_CLOSED);
        assert_int_equal(s.explainer.precision, FDS__PRECISION_F32);
        assert_true(s.explainer.draws > 0 && s.explainer.draws % 2 == 0);
        assert_true(!s.explainer.weights && !s.explainer.warm_up);
        assert_true(s.is_bank && s.keeps_models); /* few sub-models of a small network */
        task_free(&t);
    }
}

static void a_stage_has_a_name(void **state) {
    (void)state;
    for (int a = 0; a < FDS__FIT_STAGES; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(fds__fit_stage_name((fds__fit_stage)a),
                                    fds__fit_stage_name((fds__fit_stage)b));
    assert_string_equal(fds__fit_stage_name(FDS__FIT_STAGES), "?");
    assert_string_equal(fds__fit_stage_name((fds__fit_stage)-1), "?");
}

/* All methods' sub-models learn at 1e-3 = 10 times 1e-4, to the bit, whoever multiplies. */
static void sub_models_learn_at_beta_times_lr(void **state) {
    (void)state;
    task t = task_make("afds");
    for (const char *const *name = fit_methods; *name; name++) {
        t.params = default_of(*name);
        fds__fit_settings s = settled(&t);
        fds_train_params train;
        fds_error err;
        const fds__utility_params utility = fds__fit_utility(&s);
        expect_ok(fds__utility_training(&utility, &train, &err), &err);
        assert_true(train.lr == 1e-3f);
        assert_int_equal(train.converge, strcmp(*name, "fds") == 0);
        if (!train.converge)
            assert_int_equal(train.epochs, 10);
    }
    task_free(&t);
}

static void explainers_have_their_own_defaults(void **state) {
    (void)state;
    task t = task_make("afds");
    t.params.explainer_batch = t.params.explainer_epochs = 0;
    for (int at = MLP; at <= LINEAR; at++) {
        t.params.explainer = at;
        fds__fit_settings s = settled(&t);
        assert_string_equal(s.explainer.network, fds__choice(&t.params, explainer));
        assert_true(s.explainer.lr == (at == RESNET18 || at == RESNET50 ? 2e-4f : 1e-3f));
        assert_true(s.explainer.batch > 0 && s.explainer.epochs > 0);
        assert_true(!s.is_bank && s.probes == 0);
        assert_true(!s.keeps_models);
    }
    t.params.explainer_lr = 0.5, t.params.explainer_batch = 7, t.params.explainer_epochs = 9,
    t.params.keep_models = true;
    fds__fit_settings s = settled(&t);
    assert_true(s.explainer.lr == 0.5f && s.explainer.batch == 7 && s.explainer.epochs == 9);
    assert_true(s.keeps_models);
    task_free(&t);
}

static void an_explainers_threads_are_those_of_the_fit_unless_given(void **state) {
    (void)state;
    task t = task_make("afds");
    t.params.threads = 3;
    fds__fit_settings s = settled(&t);
    assert_int_equal(s.threads, 3);
    assert_int_equal(s.explainer.threads, 3);
    t.params.explainer_threads = 2;
    s = settled(&t);
    assert_int_equal(s.threads, 3);
    assert_int_equal(s.explainer.threads, 2);
    t.params.threads = t.params.explainer_threads = 0;
    s = settled(&t);
    assert_int_equal(s.threads, fds_processors());
    assert_int_equal(s.explainer.threads, fds_processors());
    task_free(&t);
}

/* gamma is of GFDS+ with an output a player, and of nothing else. */
static void gamma_is_for_the_penalty_alone(void **state) {
    (void)state;
    task t = task_make("gfds+");
    t.params.gamma = 0.25;
    fds__fit_settings s = settled(&t);
    assert_true(s.explainer.gamma == 0 && s.explainer.is_by_group);
    t.params.output_form = 1;
    s = settled(&t);
    assert_true(s.explainer.gamma == 0.25f);
    task_free(&t);
    t = task_make("afds");
    t.params.gamma = 0.25;
    s = settled(&t);
    assert_true(s.explainer.gamma == 0);
    task_free(&t);
}

/* ---- how many coalitions train, and how many validate ---- */

static void coalitions_follow_from_players(void **state) {
    (void)state;
    static const struct {
        const char *method;
        size_t count; /* sub-models are quick; 10 a player, 10 a group but not below 100 */
    } wanted[] = {{"fds", 4096}, {"afds", 4096}, {"gfds", 10 * PLAYERS}, {"gfds+", 100}};
    for (size_t i = 0; i < COUNT(wanted); i++) {
        task t = task_make(wanted[i].method);
        t.params.coalitions = 0;
        fds__fit_settings s = settled(&t);
        assert_int_equal(s.coalitions, wanted[i].count);
        assert_true(s.validation_coalitions >= 2 && s.validation_coalitions % 2 == 0);
        t.params.coalitions = 5000;
        s = settled(&t);
        assert_int_equal(s.coalitions, 5000);
        assert_int_equal(s.validation_coalitions, 250); /* one in twenty */
        task_free(&t);
    }
}

static task task_of(const char *method, size_t players) {
    task t = {.input_count = INPUTS, .params = quick(method)};
    uint32_t group_of[PLAYERS];
    fds_error err;
    t.train = clouds(SAMPLES, 1);
    expect_ok(fds_players_points(t.train, NULL, players, &t.players, &err), &err);
    for (uint32_t i = 0; i < players; i++)
        group_of[i] = i / 2;
    expect_ok(fds_groups_create(group_of, players, NULL, &t.groups, &err), &err);
    for (uint32_t i = 0; i < INPUTS; i++)
        t.inputs[i] = PLAYERS + i;
    return t;
}

/* However few players there are, leverage draws no more coalitions than there are, and no coalition
 * both trains and validates. */
static void a_small_game_has_a_validation_pair(void **state) {
    (void)state;
    static const size_t asked[] = {0, 2, 10, 12, 14, 100, 100000};
    for (size_t players = 3; players <= 10; players++)
        for (size_t i = 0; i < COUNT(asked); i++) {
            task t = task_of("afds", players);
            t.params.coalitions = asked[i];
            fds__fit_settings s = settled(&t);
            fds__fit_plans plans;
            fds_error err;
            assert_true(s.coalitions >= 2 && s.coalitions % 2 == 0);
            assert_true(s.validation_coalitions >= 2 && s.validation_coalitions % 2 == 0);
            assert_true(s.coalitions + s.validation_coalitions <= ((size_t)1 << players) - 2);
            if (asked[i])
                assert_true(s.coalitions <= asked[i]);
            expect_ok(fds__fit_plans_make(&s, players, t.groups, &plans, &err), &err);
            assert_int_equal(fds_plan_rows(plans.plan), 2 + s.coalitions);
            assert_int_equal(fds_plan_rows(plans.validation), 2 + s.validation_coalitions);
            assert_int_equal(fds_plan_rows(plans.all), 2 + s.coalitions + s.validation_coalitions);
            fds__fit_plans_free(&plans);
            task_free(&t);
        }
}

/* Samplers that draw with replacement may have seen all of a small game: then all of it checks. */
static void a_game_seen_whole_is_checked_whole(void **state) {
    (void)state;
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++) {
        task t = task_of(sampler == FDS_SAMPLER_GFDS        ? "gfds"
                         : sampler == FDS_SAMPLER_GFDS_PLUS ? "gfds+"
                                                            : "afds",
                         4);
        fds__fit_plans plans;
        fds_error err;
        t.params.sampler = sampler;
        t.params.adjust = "none";
        t.params.coalitions = 1000;
        fds__fit_settings s = settled(&t);
        expect_ok(fds__fit_plans_make(&s, 4, t.groups, &plans, &err), &err);
        assert_int_equal(fds_plan_rows(plans.plan), 2 + s.coalitions);
        assert_int_equal(
            fds_plan_rows(plans.validation),
            sampler == FDS_SAMPLER_LEVERAGE ? 4 : 2 + s.coalitions + s.validation_coalitions);
        fds__fit_plans_free(&plans);
        task_free(&t);
    }
}

static void games_too_small_for_that_are_refused(void **state) {
    (void)state;
    for (size_t players = 1; players <= 2; players++) {
        task t = task_of("afds", players);
        fds__fit_settings s;
        fds_error err;
        expect_failure(settle(&t, &s, &err), FDS_ERR_USAGE, &err, "too few for an explainer");
        task_free(&t);
    }
}

/* In the order of their numbers, validation inputs last; another seed chooses others. */
static void validation_inputs_come_last(void **state) {
    (void)state;
    task t = task_make("afds");
    fds__fit_settings s = settled(&t);
    uint32_t order[INPUTS], again[INPUTS], other[INPUTS];
    bool seen[SAMPLES] = {0};
    size_t learnt = INPUTS - s.validation_inputs;
    assert_int_equal(s.validation_inputs, INPUTS / 10);
    fds__fit_order(&s, t.inputs, INPUTS, order);
    for (size_t i = 0; i < INPUTS; i++) {
        assert_true(order[i] >= PLAYERS && order[i] < PLAYERS + INPUTS && !seen[order[i]]);
        seen[order[i]] = true;
        if (i > 0 && i != learnt)
            assert_true(order[i - 1] < order[i]);
    }
    fds__fit_order(&s, t.inputs, INPUTS, again);
    assert_memory_equal(order, again, sizeof order);
    s.seed++;
    fds__fit_order(&s, t.inputs, INPUTS, other);
    assert_memory_not_equal(order, other, sizeof order);
    task_free(&t);
}

/* Another draw of coalitions leaves the sub-models as they are. */
static void another_draw_is_of_the_coalitions_alone(void **state) {
    (void)state;
    task t = task_make("afds");
    fds__fit_settings a = settled(&t);
    t.params.draw = 1;
    fds__fit_settings b = settled(&t);
    assert_true(a.plan_seed != b.plan_seed);
    assert_true(a.utility.train.seed == b.utility.train.seed);
    task_free(&t);
}

/* ---- mistakes ---- */

static void no_kind_of_method(void **state) {
    (void)state;
    fds_params p;
    fds_error err;
    expect_failure(fds__fit_default("owen", &p, &err), FDS_ERR_USAGE, &err,
                   "`method` must be fds, afds, gfds or gfds+ (got owen)");
    expect_failure(fds__fit_default("", &p, &err), FDS_ERR_USAGE, &err, "`method` must be");
    expect_failure(fds__fit_default(NULL, &p, &err), FDS_ERR_USAGE, &err, "`method` must be");
    assert_int_equal(fds__fit_default("FDS", &p, NULL), FDS_ERR_USAGE);
}

static fds_groups *one_group(void) {
    static const uint32_t group_of[PLAYERS];
    fds_groups *groups;
    fds_error err;
    expect_ok(fds_groups_create(group_of, PLAYERS, NULL, &groups, &err), &err);
    return groups;
}

/* Sets a field as a caller does, by name and text. */
static void give(task *t, const char *name, const char *text) {
    fds_error err;
    expect_ok(fds_params_set(&t->params, name, text, &err), &err);
}

/* Each changes a task that is right in one place. */
static void odd_coalitions(task *t) { t->params.coalitions = 61; }
static void weights_for_mlp(task *t) {
    t->params.weights = "w.safetensors", t->params.explainer = MLP;
}
static void weights_for_bank(task *t) {
    t->params.weights = "w", t->params.given[FDS__PLACE_weights] = true; /* nothing to be freed */
    t->params.explainer = BANK;
}
static void warm_bank(task *t) { give(t, "warm_up", "true"), t->params.explainer = BANK; }
static void knn(task *t) { t->params.utility = "knn:3"; }
static void kernel_bank(task *t) { t->params.explainer = BANK, t->params.utility = "kernel"; }
static void by_group(task *t) { give(t, "form", "groups"); }
static void gamma_by_group(task *t) { give(t, "gamma", "0.5"); }
static void epochs_to_converge(task *t) { give(t, "epochs", "3"); }
static void few_inputs(task *t) { t->input_count = 9; }
static void no_inputs(task *t) { t->input_count = 0; }
static void a_players_input(task *t) { t->inputs[7] = 3; }
static void input_twice(task *t) { t->inputs[7] = t->inputs[8]; }
static void input_beyond(task *t) { t->inputs[7] = SAMPLES; }
static void own_sampler(task *t) { give(t, "sampler", "paired"); }
static void wrong_adjust(task *t) { t->params.adjust = "most"; }
static void wrong_model(task *t) { t->params.model = "lennet5"; }
static void grouped_for_nothing(task *t) { t->params.group = "label", t->params.adjust = "none"; }
static void no_group_file(task *t) {
    fds_groups_free(t->groups), t->groups = NULL, t->params.group = "lable";
}
static void all_in_one(task *t) { fds_groups_free(t->groups), t->groups = one_group(); }

static void mistakes_are_named_before_any_work(void **state) {
    (void)state;
    static const struct {
        const char *method;
        void (*spoil)(task *);
        fds_status status;
        const char *words;
    } cases[] = {
        {"afds", odd_coalitions, FDS_ERR_USAGE, "`coalitions` must be even"},
        {"gfds", odd_coalitions, FDS_ERR_USAGE, "(got 61)"},
        {"gfds+", odd_coalitions, FDS_ERR_USAGE, "(got 61)"},
        {"gfds+", gamma_by_group, FDS_ERR_USAGE, "`gamma` needs `form` penalty"},
        {"afds", gamma_by_group, FDS_ERR_USAGE, "`gamma` "},
        {"afds", weights_for_mlp, FDS_ERR_USAGE, "resnet18 or resnet50 (got mlp)"},
        {"afds", weights_for_bank, FDS_ERR_USAGE, "`weights` needs `explainer` auto, mlp,"},
        {"afds", warm_bank, FDS_ERR_USAGE, "`warm_up` needs `explainer` auto, mlp,"},
        {"afds", knn, FDS_ERR_USAGE, "`utility` must be retrain, retrain:K or command:PROGRAM"},
        {"afds", kernel_bank, FDS_ERR_USAGE, "(got kernel)"},
        {"afds", by_group, FDS_ERR_USAGE, "it applies to gfds+"},
        {"gfds", by_group, FDS_ERR_USAGE, "it applies to gfds+"},
        {"fds", epochs_to_converge, FDS_ERR_USAGE, "`epochs` does not apply to method fds"},
        {"afds", few_inputs, FDS_ERR_USAGE, "`inputs` must be at least 10 (got 9)"},
        {"afds", no_inputs, FDS_ERR_USAGE, "(got 0)"},
        {"afds", a_players_input, FDS_ERR_USAGE, "sample 3 belongs to a player"},
        {"afds", input_twice, FDS_ERR_USAGE, "named twice"},
        {"afds", input_beyond, FDS_ERR_USAGE, "86"},
        {"gfds", own_sampler, FDS_ERR_USAGE, "`sampler` does not apply to method gfds"},
        {"afds", wrong_adjust, FDS_ERR_USAGE, "most"},
        {"afds", wrong_model, FDS_ERR_USAGE, "did you mean \"lenet5\"?"},
        {"afds", grouped_for_nothing, FDS_ERR_USAGE, "`group` needs method gfds or gfds+"},
        {"afds", no_group_file, FDS_ERR_NOT_FOUND, "did you mean \"label\"?"},
        {"gfds+", all_in_one, FDS_ERR_USAGE, "two groups"},
    };
    for (size_t at = 0; at < COUNT(cases); at++) {
        task t = task_make(cases[at].method);
        fds__fit_cost cost;
        fds_error err = {0};
        cases[at].spoil(&t);
        expect_failure(try_fit(&t, scratch_path("run"), NULL, &err), cases[at].status, &err,
                       cases[at].words);
        assert_int_equal(try_fit(&t, scratch_path("run"), NULL, NULL), cases[at].status);
        assert_int_equal(fds__fit_estimate(problem_of(&t), &t.params, NULL, &cost, NULL),
                         cases[at].status);
        assert_int_equal(scratch_entries(), 0);
        task_free(&t);
    }
}

/* Inputs without numbers are the first samples, which are the players'. */
static void the_first_samples_may_be_players(void **state) {
    (void)state;
    task t = task_make("afds");
    fds_problem problem = *problem_of(&t);
    fds__fit_settings s = settled(&t);
    fds_error err;
    problem.inputs = NULL;
    problem.input_count = 20;
    expect_failure(fds__fit_settle(&t.params, &problem, t.groups, &s, &err), FDS_ERR_USAGE, &err,
                   "sample 0 belongs to a player");
    task_free(&t);
}

/* Least squares on the answers of sub-models have a limit, and auto keeps it. */
static void auto_is_a_network_for_more_players_than_sub_models_answer_for(void **state) {
    (void)state;
    enum { SOURCES = 16500 };
    static const struct {
        size_t players, each; /* players of a group: groups have unknowns too */
        const char *method, *network;
    } wanted[] = {{15000, 7500, "afds", "bank"},
                  {15000, 15, "afds", "mlp"},
                  {16385, 8193, "afds", "mlp"},
                  {16385, 8193, "gfds+", "bank"}};
    fds_dataset *train = clouds(SOURCES + INPUTS, 1);
    uint32_t *group_of = need(SOURCES, sizeof *group_of);
    for (size_t i = 0; i < COUNT(wanted); i++) {
        task t = task_make(wanted[i].method);
        fds_problem problem = *problem_of(&t);
        fds_players *players = NULL;
        fds_groups *groups = NULL;
        uint32_t inputs[INPUTS];
        fds__fit_settings s;
        fds_error err;
        t.params.explainer = AUTO;
        expect_ok(fds_players_points(train, NULL, wanted[i].players, &players, &err), &err);
        for (uint32_t k = 0; k < wanted[i].players; k++)
            group_of[k] = k / (uint32_t)wanted[i].each;
        expect_ok(fds_groups_create(group_of, wanted[i].players, NULL, &groups, &err), &err);
        for (uint32_t k = 0; k < INPUTS; k++)
            inputs[k] = SOURCES + k;
        problem.train = problem.test = train;
        problem.players = players;
        problem.groups = groups;
        problem.inputs = inputs;
        expect_ok(fds__fit_read(&t.params, &problem, &s, &err), &err);
        expect_ok(fds__fit_settle(&t.params, &problem, groups, &s, &err), &err);
        assert_string_equal(s.explainer.network, wanted[i].network);
        fds_groups_free(groups);
        fds_players_free(players);
        task_free(&t);
    }
    free(group_of);
    fds_dataset_free(train);
}

/* bf16 is a setting where the processor has it, and refused by name where not. */
static void bf16_is_refused_where_there_is_none(void **state) {
    (void)state;
    task t = task_make("afds");
    fds__fit_settings s;
    fds_error err;
    t.params.precision = 1;
    fds_status status = settle(&t, &s, &err);
    if (fds__deep_bf16_check(NULL) == FDS_OK)
        expect_ok(status, &err);
    else
        expect_failure(status, FDS_ERR_UNSUPPORTED, &err, "bf16");
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_methods_are_the_papers),
        cmocka_unit_test(a_stage_has_a_name),
        cmocka_unit_test(sub_models_learn_at_beta_times_lr),
        cmocka_unit_test(explainers_have_their_own_defaults),
        cmocka_unit_test(an_explainers_threads_are_those_of_the_fit_unless_given),
        cmocka_unit_test(gamma_is_for_the_penalty_alone),
        cmocka_unit_test(coalitions_follow_from_players),
        cmocka_unit_test(a_small_game_has_a_validation_pair),
        cmocka_unit_test(a_game_seen_whole_is_checked_whole),
        cmocka_unit_test(games_too_small_for_that_are_refused),
        cmocka_unit_test(validation_inputs_come_last),
        cmocka_unit_test(another_draw_is_of_the_coalitions_alone),
        cmocka_unit_test(no_kind_of_method),
        IN_SCRATCH(mistakes_are_named_before_any_work),
        cmocka_unit_test(the_first_samples_may_be_players),
        cmocka_unit_test(auto_is_a_network_for_more_players_than_sub_models_answer_for),
        cmocka_unit_test(bf16_is_refused_where_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
