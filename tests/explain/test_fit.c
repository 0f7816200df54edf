/* SPDX-License-Identifier: Apache-2.0
 * A whole fit: the four methods, what its answers add up to, what a second call does, going on
 * after having been stopped anywhere, and two at a time. */
#include "fixture.h"

#include "utility/table.h"

/* ---- the methods ---- */

static void expect_report(const task *t, const fds__fit_report *r) {
    bool is_grouped = t->params.method[0] == 'g'; /* some coalitions are drawn twice */
    assert_true(r->sub_models <= 2 + t->params.coalitions + 20);
    assert_true(is_grouped ? r->sub_models > 30 : r->sub_models == 2 + t->params.coalitions + 20);
    assert_true(r->service_accuracy > 1.0 / CLASSES && r->service_accuracy <= 1);
    assert_true(r->epochs >= 1 && r->epochs <= t->params.explainer_epochs);
    assert_true(r->best_epoch >= 1 && r->best_epoch <= r->epochs);
    assert_true(isfinite(r->loss) && r->loss >= 0 && r->loss < 1);
    assert_true(r->agreement >= -1 && r->agreement <= 1);
    assert_true(r->within >= -1 && r->within <= 1);
    for (int s = 0; s < FDS__FIT_STAGES; s++)
        assert_true(r->seconds[s] >= 0 && r->seconds[s] < 1000);
}

static void each_method_fits_and_answers_add_up(void **state) {
    (void)state;
    for (const char *const *method = fit_methods; *method; method++)
        for (int objective = FDS__OBJECTIVE_CLOSED; objective <= FDS__OBJECTIVE_PAPER;
             objective++) {
            task t = task_make(*method);
            t.params.objective = objective;
            fds__fit_report report = fit(&t, scratch_path("run"));
            expect_report(&t, &report);
            assert_false(report.was_resumed);
            expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_EXPLAINER);
            remove_run(scratch_path("run"));
            task_free(&t);
        }
}

/* With enough epochs the explainer says on new inputs what least squares say. */
static void an_explainer_learns(void **state) {
    (void)state;
    task t = task_make("afds");
    t.params.explainer = MLP;
    t.params.explainer_epochs = IS_SLOW_BUILD ? 20 : 60;
    fds__fit_report report = fit(&t, scratch_path("run"));
    expect_report(&t, &report);
    print_message("# agreement %.3f, within %.3f, loss %.2g\n", report.agreement, report.within,
                  report.loss);
    assert_true(report.agreement > 0.7);
    task_free(&t);
}

/* Correlations of values that do not differ are none: NaN in the report, null in run.json. */
static void what_is_not_defined_is_no_number(void **state) {
    (void)state;
    for (int is_bank = 0; is_bank < 2; is_bank++) {
        task t = task_make("gfds+");
        uint32_t group_of[PLAYERS];
        fds_error err;
        for (uint32_t i = 0; i < PLAYERS; i++)
            group_of[i] = i % CLASSES; /* a group is a class */
        fds_groups_free(t.groups);
        expect_ok(fds_groups_create(group_of, PLAYERS, NULL, &t.groups, &err), &err);
        if (is_bank)
            t.params.explainer = BANK;
        for (int again = 0; again < 2; again++) { /* computed, then read */
            fds__fit_report r = fit(&t, scratch_path("run"));
            assert_true(isnan(r.within));
            assert_true(!isnan(r.agreement) == !is_bank && !isnan(r.loss) == !is_bank);
        }
        json_t *run = read_run(scratch_path("run"));
        assert_true(json_is_null(json_object_get(json_object_get(run, "results"), "within")));
        json_decref(run);
        remove_run(scratch_path("run"));
        task_free(&t);
    }
}

/* GFDS+: members of a group get the same, by groups to the bit, with the penalty as nothing tells
 * them apart. */
static void members_of_a_group_get_the_same(void **state) {
    (void)state;
    static answers a;
    for (int by_group = 0; by_group < 2; by_group++) {
        task t = task_make("gfds+");
        t.params.output_form = !by_group;
        fit(&t, scratch_path("run"));
        fds_run *run = open_run(scratch_path("run"));
        ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, false, &a);
        for (size_t x = 0; x < MOST; x++)
            for (size_t i = GROUPS; i < PLAYERS; i++)
                assert_true(fabs(a.values[x * PLAYERS + i] - a.values[x * PLAYERS + i - GROUPS]) <=
                            (by_group ? 0 : 1e-5));
        fds_run_free(run);
        remove_run(scratch_path("run"));
        task_free(&t);
    }
}

/* Two groups have one pair of coalitions: there is nothing to keep out but inputs. */
static void few_groups_are_enough(void **state) {
    (void)state;
    for (uint32_t groups = 2; groups <= 5; groups++)
        for (int sampler = FDS_SAMPLER_GFDS; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++) {
            task t = task_make(sampler == FDS_SAMPLER_GFDS ? "gfds" : "gfds+");
            uint32_t group_of[PLAYERS];
            fds_error err;
            for (uint32_t i = 0; i < PLAYERS; i++)
                group_of[i] = i % groups;
            fds_groups_free(t.groups);
            expect_ok(fds_groups_create(group_of, PLAYERS, NULL, &t.groups, &err), &err);
            t.params.coalitions = 0;
            fds__fit_report report = fit(&t, scratch_path("run"));
            assert_true(isfinite(report.loss));
            if (sampler == FDS_SAMPLER_GFDS_PLUS) /* all that there are */
                assert_true(report.sub_models <= (size_t)1 << groups);
            expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_EXPLAINER);
            remove_run(scratch_path("run"));
            task_free(&t);
        }
}

/* Every sampler fits with every adjustment, except counts where whole groups are players. */
static void other_settings_fit_too(void **state) {
    (void)state;
    static const char *const adjustments[] = {"none", "shrink", "counts"};
    for (int sampler = FDS_SAMPLER_KERNEL; sampler <= FDS_SAMPLER_GFDS_PLUS; sampler++)
        for (size_t adjust = 0; adjust < COUNT(adjustments); adjust++) {
            bool is_grouped = sampler >= FDS_SAMPLER_GFDS;
            task t = task_make(!is_grouped                   ? "afds"
                               : sampler == FDS_SAMPLER_GFDS ? "gfds"
                                                             : "gfds+");
            fds_error err = {0};
            t.params.sampler = sampler;
            t.params.adjust = adjustments[adjust];
            t.params.explainer_epochs = 1;
            t.params.warm_up = sampler == FDS_SAMPLER_PAIRED;
            if (is_grouped && adjust == FDS_ADJUST_COUNTS) {
                expect_failure(try_fit(&t, scratch_path("run"), NULL, &err), FDS_ERR_USAGE, &err,
                               "`adjust` counts does not apply");
                assert_int_equal(scratch_entries(), 0);
            } else {
                fit(&t, scratch_path("run"));
                expect_efficient(&t, scratch_path("run"), FDS__ANSWERER_EXPLAINER);
                remove_run(scratch_path("run"));
            }
            task_free(&t);
        }
}

/* v(0) and v(1) of an answer are those of the sub-models without players and with all of them. */
static void the_ends_are_those_of_the_game(void **state) {
    (void)state;
    static answers a;
    task t = task_make("afds");
    const uint64_t none = 0, all = ((uint64_t)1 << PLAYERS) - 1;
    float empty[INPUTS * CLASSES], full[INPUTS * CLASSES];
    uint32_t order[INPUTS];
    fds_error err;
    fit(&t, scratch_path("run"));
    fds_utility *value = utility_of(&t, order);
    expect_ok(fds_utility_eval(value, 0, &none, empty, &err), &err);
    expect_ok(fds_utility_eval(value, 0, &all, full, &err), &err);
    fds_run *run = open_run(scratch_path("run"));
    ask(run, FDS__ANSWERER_EXPLAINER, t.train, order, INPUTS, false, &a);
    assert_memory_equal(a.probs, full, sizeof full);
    for (size_t x = 0; x < INPUTS; x++) {
        assert_true(a.full[x] == (double)full[x * CLASSES + a.labels[x]]);
        assert_true(a.empty[x] == (double)empty[x * CLASSES + a.labels[x]]);
    }
    fds_run_free(run);
    fds_utility_free(value);
    task_free(&t);
}

/* ---- a second call ---- */

/* A mistake about the explainer shows before the sub-models are trained, and leaves no folder. */
static void mistakes_about_the_explainer_show_at_once(void **state) {
    (void)state;
    task t = task_make("afds");
    fds_error err;
    t.params.explainer = RESNET18;
    expect_failure(try_fit(&t, scratch_path("run"), NULL, &err), FDS_ERR_SHAPE, &err, "resnet18");
    assert_int_equal(scratch_entries(), 0);
    task_free(&t);
}

/* A file that is written anew is another file under the same name. */
static ino_t file_of(const char *path) {
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_ino;
}

static void a_second_call_does_no_work(void **state) {
    (void)state;
    static const char *const names[] = {FDS__RUN_JSON, FDS__RUN_SERVICE, FDS__RUN_EXPLAINER,
                                        FDS__RUN_PLAYERS, FDS__RUN_ERRORS};
    ino_t files[COUNT(names)];
    task t = task_make("afds");
    fds__fit_report first = fit(&t, scratch_path("run"));
    for (size_t i = 0; i < COUNT(names); i++)
        files[i] = file_of(in_run(scratch_path("run"), names[i]));
    fds__fit_report second = fit(&t, scratch_path("run"));
    for (size_t i = 0; i < COUNT(names); i++)
        assert_true(files[i] == file_of(in_run(scratch_path("run"), names[i])));
    assert_true(second.was_resumed);
    assert_int_equal(first.sub_models, second.sub_models);
    assert_int_equal(first.epochs, second.epochs);
    assert_int_equal(first.best_epoch, second.best_epoch);
    assert_true(first.service_accuracy == second.service_accuracy);
    assert_true(first.loss == second.loss && first.agreement == second.agreement);
    assert_true(first.within == second.within);
    for (int s = 0; s < FDS__FIT_STAGES; s++)
        assert_true(first.seconds[s] == second.seconds[s]);
    /* threads are not a setting: a run may be read with others */
    t.params.threads = 2;
    assert_true(fit(&t, scratch_path("run")).loss == first.loss);
    task_free(&t);
}

static void other_lr(task *t) { t->params.explainer_lr = 0.125; }
static void other_seed(task *t) { t->params.seed = 77; }
static void other_draw(task *t) { t->params.draw = 1; }
static void other_count(task *t) { t->params.coalitions = 80; }
static void other_kind(task *t) { t->params.epochs = 5; }
static void other_beta(task *t) { t->params.beta = 5; }
static void other_network(task *t) { t->params.model = "fc:4,relu,fc:classes"; }
static void other_explainer(task *t) { t->params.explainer = MLP; }
static void other_adjust(task *t) { t->params.adjust = "none"; }
static void other_sampler(task *t) { t->params.sampler = FDS_SAMPLER_PAIRED; }
static void other_objective(task *t) { t->params.objective = FDS__OBJECTIVE_PAPER; }
static void other_method(task *t) { t->params.method = "gfds"; }
static void other_inputs(task *t) { t->inputs[0] = SAMPLES - 1; }
static void fewer_inputs(task *t) { t->input_count -= 10; }
static void kept(task *t) { t->params.keep_models = true; }
static void warmed(task *t) { t->params.warm_up = true; }
static void other_data(task *t) { fds_dataset_free(t->train), t->train = clouds(SAMPLES, 2); }
static void other_players(task *t) {
    fds_error err;
    fds_players_free(t->players);
    fds_groups_free(t->groups);
    uint32_t index[PLAYERS], group_of[PLAYERS];
    for (uint32_t i = 0; i < PLAYERS; i++)
        index[i] = i < PLAYERS - 1 ? i : SAMPLES - 1, group_of[i] = i % GROUPS;
    expect_ok(fds_players_points(t->train, index, PLAYERS, &t->players, &err), &err);
    expect_ok(fds_groups_create(group_of, PLAYERS, NULL, &t->groups, &err), &err);
}
static void other_groups(task *t) {
    fds_error err;
    uint32_t group_of[PLAYERS];
    fds_groups_free(t->groups);
    for (uint32_t i = 0; i < PLAYERS; i++)
        group_of[i] = i / 3;
    expect_ok(fds_groups_create(group_of, PLAYERS, NULL, &t->groups, &err), &err);
}

static void other_settings_are_refused_by_name(void **state) {
    (void)state;
    static const struct {
        void (*change)(task *);
        const char *words;
    } cases[] = {
        {other_lr, "explainer.lr is 0.001 in the run, 0.125 now"},
        {other_seed, "explainer.seed is 3 in the run, 77 now"},
        {other_draw, "coalitions.seed"},
        {other_count, "coalitions.count is 60 in the run, 80 now"},
        {other_kind, "utility."},
        {other_beta, "utility.lr is 0.01 in the run, 0.005 now"},
        {other_network, "utility.network"},
        {other_explainer, "explainer.network is \"linear\" in the run, \"mlp\" now"},
        {other_adjust, "adjust is \"counts\" in the run, \"none\" now"},
        {other_sampler, "coalitions.sampler is \"leverage\" in the run, \"paired\" now"},
        {other_objective, "explainer.objective"},
        {other_method, "method is \"afds\" in the run, \"gfds\" now"},
        {other_inputs, "in the run"},
        {fewer_inputs, "inputs.count is 60 in the run, 50 now"},
        {kept, "keep_models is false in the run, true now"},
        {warmed, "explainer.warm_up"},
        {other_data, "in the run"},
        {other_players, "players"},
        {other_groups, "groups"},
    };
    task t = task_make("afds");
    char before[65], after[65];
    fit(&t, scratch_path("run"));
    sha256_of(scratch_path("run/run.json"), before);
    task_free(&t);
    for (size_t i = 0; i < COUNT(cases); i++) {
        fds_error err = {0};
        t = task_make("afds");
        cases[i].change(&t);
        expect_failure(try_fit(&t, scratch_path("run"), NULL, &err), FDS_ERR_CONFLICT, &err,
                       cases[i].words);
        expect_in(err.text, "run.json: ");
        sha256_of(scratch_path("run/run.json"), after);
        assert_string_equal(before, after);
        task_free(&t);
    }
}

/* ---- the service model ---- */

/* How often a fit reports of a network that is trained outside the table. */
static bool count_service(void *user, const fds_progress *progress) {
    *(unsigned *)user +=
        strcmp(progress->stage, "service model") == 0 || strcmp(progress->stage, "train") == 0;
    return false;
}

/* It is the sub-model of all players; where the table has that but the file is lost, it is trained
 * once more. */
static void the_service_model_is_a_row_of_the_table(void **state) {
    (void)state;
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        task t = task_make("afds");
        unsigned trained = 0;
        char wanted[65], got[65];
        t.params.keep_models = is_kept;
        t.events = (fds_events){.progress = count_service, .user = &trained};
        fit(&t, scratch_path("run"));
        assert_int_equal(trained, 0);
        sha256_of(scratch_path("run/service.safetensors"), wanted);
        assert_int_equal(unlink(scratch_path("run/service.safetensors")), 0);
        fit(&t, scratch_path("run"));
        assert_true(trained > 0);
        sha256_of(scratch_path("run/service.safetensors"), got);
        assert_string_equal(got, wanted);
        remove_run(scratch_path("run"));
        task_free(&t);
    }
}

/* ---- stopped and gone on ---- */

/* Stops a fit at places all over it, one after the other, goes on, and ends with what a fit that
 * was not stopped ends with. */
static void stop_everywhere(task *t, uint64_t places) {
    stopper s = {0};
    char wanted[65], got[65];
    fds_error err;
    t->events = (fds_events){.progress = stop, .user = &s};
    fit(t, scratch_path("whole"));
    uint64_t calls = s.calls, stopped = 0;
    sha256_of(scratch_path("whole/explainer.safetensors"), wanted);
    for (uint64_t place = 0; place < places; place++) {
        uint64_t at = 1 + place * (calls - 1) / (places - 1);
        s = (stopper){.stop_at = at};
        fds_status status = try_fit(t, scratch_path("run"), NULL, &err);
        if (status == FDS_OK) /* the last report of a stage comes too late to stop it */
            assert_true(at > calls / 2);
        else
            expect_failure(status, FDS_ERR_CANCELLED, &err, "");
        stopped += status != FDS_OK;
        fds_run *none;
        if (status != FDS_OK)
            expect_failure(fds__run_open(scratch_path("run"), 0, &none, &err), FDS_ERR_USAGE, &err,
                           "interrupted");
        s = (stopper){0};
        fds__fit_report report = fit(t, scratch_path("run"));
        assert_true(report.was_resumed);
        sha256_of(scratch_path("run/explainer.safetensors"), got);
        assert_string_equal(got, wanted);
        expect_same_record(scratch_path("run"), scratch_path("whole"));
        assert_int_equal(access(scratch_path("run/checkpoint.safetensors"), F_OK), -1);
        remove_run(scratch_path("run"));
    }
    print_message("# stopped %llu times, at places of %llu\n", (unsigned long long)stopped,
                  (unsigned long long)calls);
    assert_true(stopped >= places - 2);
    remove_run(scratch_path("whole"));
}

static void a_stopped_fit_ends_with_the_same_bits(void **state) {
    (void)state;
    double kept_s = learn_checkpoint_s, values_s = fds__values_kept_s;
    learn_checkpoint_s = 0; /* a checkpoint after every epoch */
    fds__values_kept_s = 0; /* and the values */
    for (const char *const *method = fit_methods; *method; method++) {
        task t = task_make(*method);
        t.params.objective = **method == 'g' ? FDS__OBJECTIVE_PAPER : FDS__OBJECTIVE_CLOSED;
        t.params.warm_up = strcmp(*method, "fds") == 0;
        stop_everywhere(&t, IS_SLOW_BUILD ? 4 : 10);
        task_free(&t);
    }
    learn_checkpoint_s = kept_s;
    fds__values_kept_s = values_s;
}

/* Counts the reports of least squares, and stops when the explainer is trained. */
typedef struct {
    size_t solved;
    bool is_stopped;
} solve_counter;

static bool count_solved(void *user, const fds_progress *p) {
    solve_counter *c = user;
    c->solved +=
        strcmp(p->stage, "normal equations") == 0 || strcmp(p->stage, "least squares") == 0;
    return c->is_stopped && strcmp(p->stage, "explainer") == 0;
}

/* Killed, so to speak, after the values: they are read, unless their file is damaged. */
static void a_fit_that_was_stopped_does_not_solve_again(void **state) {
    (void)state;
    char wanted[65], got[65], *data;
    size_t size;
    double values_s = fds__values_kept_s;
    fds_error err;
    fds__values_kept_s = 0;
    task t = task_make("afds");
    fit(&t, scratch_path("whole"));
    sha256_of(scratch_path("whole/explainer.safetensors"), wanted);
    for (size_t damage = 0; damage < 4; damage++) {
        solve_counter c = {.is_stopped = true};
        t.events = (fds_events){.progress = count_solved, .user = &c};
        assert_int_equal(try_fit(&t, scratch_path("run"), NULL, &err), FDS_ERR_CANCELLED);
        assert_true(c.solved > 0);
        data = scratch_read(scratch_path("run/values.part"), &size);
        data[damage == 1 ? 16 : damage == 2 ? size - 1 : 0] ^= damage > 0 && damage < 3;
        scratch_write(scratch_path("run/values.part"), data, damage == 3 ? size - 8 : size);
        free(data);
        c = (solve_counter){0};
        fit(&t, scratch_path("run"));
        assert_true(damage ? c.solved > 0 : c.solved == 0);
        sha256_of(scratch_path("run/explainer.safetensors"), got);
        assert_string_equal(got, wanted);
        expect_same_record(scratch_path("run"), scratch_path("whole"));
        assert_int_equal(access(scratch_path("run/values.part"), F_OK), -1);
        remove_run(scratch_path("run"));
    }
    fds__values_kept_s = values_s;
    task_free(&t);
}

/* The usual case: a quick training leaves no checkpoint, and begins anew. */
static void a_fit_without_checkpoints_ends_with_the_same_bits(void **state) {
    (void)state;
    task t = task_make("afds");
    stop_everywhere(&t, IS_SLOW_BUILD ? 4 : 10);
    task_free(&t);
}

/* Stopped again and again, each time a little later. */
static void a_fit_stopped_many_times_ends_with_the_same_bits(void **state) {
    (void)state;
    double kept_s = learn_checkpoint_s, values_s = fds__values_kept_s;
    char wanted[65], got[65];
    stopper s = {0};
    fds_error err;
    fds_status status;
    unsigned times = 0;
    learn_checkpoint_s = fds__values_kept_s = 0;
    task t = task_make("afds");
    fit(&t, scratch_path("whole"));
    t.events = (fds_events){.progress = stop, .user = &s};
    do {
        /* beyond the least squares of the values, which are then kept; later beyond those of the check */
        s = (stopper){.stop_at = (times ? 80 : 130) + times % 5};
        status = try_fit(&t, scratch_path("run"), NULL, &err);
        assert_true(status == FDS_OK || status == FDS_ERR_CANCELLED);
    } while (status != FDS_OK && ++times < 1000);
    expect_ok(status, &err);
    print_message("# stopped %u times\n", times);
    sha256_of(scratch_path("whole/explainer.safetensors"), wanted);
    sha256_of(scratch_path("run/explainer.safetensors"), got);
    assert_string_equal(got, wanted);
    expect_same_record(scratch_path("run"), scratch_path("whole"));
    assert_true(times >= 2);
    learn_checkpoint_s = kept_s;
    fds__values_kept_s = values_s;
    task_free(&t);
}

/* Files of an interrupted run are not trusted: damaged ones are computed again. */
static void leftovers_that_are_damaged_do_no_harm(void **state) {
    (void)state;
    static const char *const names[] = {FDS__RUN_SERVICE, FDS__RUN_EXPLAINER, FDS__RUN_PLAYERS,
                                        FDS__RUN_ERRORS, "checkpoint.safetensors"};
    char wanted[65], got[65];
    task t = task_make("afds");
    fit(&t, scratch_path("whole"));
    sha256_of(scratch_path("whole/explainer.safetensors"), wanted);
    stopper s = {.stop_at = 3};
    fds_error err;
    t.events = (fds_events){.progress = stop, .user = &s};
    assert_int_equal(try_fit(&t, scratch_path("run"), NULL, &err), FDS_ERR_CANCELLED);
    for (size_t i = 0; i < COUNT(names); i++)
        scratch_write(in_run(scratch_path("run"), names[i]), "torn", 4);
    fit(&t, scratch_path("run"));
    sha256_of(scratch_path("run/explainer.safetensors"), got);
    assert_string_equal(got, wanted);
    expect_same_record(scratch_path("run"), scratch_path("whole"));
    fds_run_free(open_run(scratch_path("run")));
    task_free(&t);
}

/* ---- threads and processes ---- */

static void two_threads_fit_as_well_as_one(void **state) {
    (void)state;
    static answers one, two;
    task t = task_make("afds");
    fds__fit_report report[2];
    for (unsigned threads = 1; threads <= 2; threads++) {
        const char *dir = scratch_path(threads == 1 ? "one" : "two");
        t.params.threads = threads;
        report[threads - 1] = fit(&t, dir);
        expect_report(&t, &report[threads - 1]);
        fds_run *run = open_run(dir);
        ask(run, FDS__ANSWERER_EXPLAINER, t.train, NULL, MOST, false, threads == 1 ? &one : &two);
        fds_run_free(run);
    }
    assert_true(fabs(report[0].loss - report[1].loss) <= 1e-4 * report[0].loss);
    assert_memory_equal(one.labels, two.labels, sizeof one.labels);
    assert_memory_equal(one.full, two.full, sizeof one.full);
    for (size_t i = 0; i < MOST * PLAYERS; i++)
        assert_true(fabs(one.values[i] - two.values[i]) < 1e-4);
    task_free(&t);
}

static json_int_t machine_number(const char *dir, const char *key) {
    json_t *run = read_run(dir);
    json_int_t number = json_integer_value(json_object_get(json_object_get(run, "machine"), key));
    json_decref(run);
    return number;
}

/* Digits: a network of convolutions adds up in another order with two threads than with one, which
 * small networks of vectors do not. */
static task task_digits(void) {
    task t = {.input_count = INPUTS, .params = quick("afds")};
    fds_dataset *test = NULL;
    fds_error err;
    char path[512];
    assert_non_null(getenv("FDS_TEST_DATA"));
    snprintf(path, sizeof path, "%s/mnist", getenv("FDS_TEST_DATA"));
    expect_ok(fds__data_open(path, NULL, NULL, &t.train, &test, &err), &err);
    fds_dataset_free(test);
    task_players(&t);
    for (uint32_t i = 0; i < INPUTS; i++)
        t.inputs[i] = PLAYERS + i;
    t.params.epochs = 1;
    t.params.model = "maxpool:7,fc:classes";
    t.params.explainer = CNN;
    t.params.explainer_epochs = 1;
    return t;
}

/* Fits with one and with two threads, but so many for the explainer: it must be the same, and so
 * must everything that follows from it. */
static void expect_own_threads_decide(task *t, unsigned own) {
    static const char *const files[] = {FDS__RUN_EXPLAINER, FDS__RUN_ERRORS, FDS__RUN_VALIDATION};
    double values[2][PLAYERS];
    fds__fit_report report[2];
    t->params.explainer_threads = own;
    for (unsigned threads = 1; threads <= 2; threads++) {
        const char *dir = scratch_path(threads == 1 ? "one" : "two");
        uint32_t label;
        t->params.threads = threads;
        report[threads - 1] = fit(t, dir);
        assert_int_equal(machine_number(dir, "threads"), threads);
        assert_int_equal(machine_number(dir, "explainer_threads"), own);
        fds_run *run = open_run(dir); /* with those that it was trained with */
        const fds__answers to = {.labels = &label, .values = values[threads - 1]};
        fds_error err;
        expect_ok(fds__run_explain(run, FDS__ANSWERER_EXPLAINER, t->train, t->inputs, 1, false, &to,
                                   &err),
                  &err);
        fds_run_free(run);
    }
    for (size_t f = 0; f < COUNT(files); f++) {
        char one[65], two[65];
        sha256_of(in_run(scratch_path("one"), files[f]), one);
        sha256_of(in_run(scratch_path("two"), files[f]), two);
        assert_string_equal(one, two);
    }
    assert_true(report[0].loss == report[1].loss && report[0].agreement == report[1].agreement);
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    remove_run(scratch_path("one"));
    remove_run(scratch_path("two"));
}

static void an_explainers_bits_depend_on_its_own_threads_alone(void **state) {
    (void)state;
    task t = task_make("afds");
    for (unsigned own = 1; own <= 2; own++)
        expect_own_threads_decide(&t, own);
    task_free(&t);
    t = task_digits();
    expect_own_threads_decide(&t, 1);
    task_free(&t);
}

static void two_fits_at_once_do_not_mix(void **state) {
    (void)state;
    task t = task_make("afds");
    stopper s = {.stop_at = 10};
    fds_error err = {0};
    uint32_t order[INPUTS];
    fds_table *table = NULL;
    t.events = (fds_events){.progress = stop, .user = &s};
    assert_int_equal(try_fit(&t, scratch_path("run"), NULL, &err), FDS_ERR_CANCELLED);
    fds_utility *value = utility_of(&t, order);
    expect_ok(
        fds_table_open(scratch_path("run/utilities"), value, FDS_STORE_F32, NULL, &table, &err),
        &err);
    expect_failure(try_fit(&t, scratch_path("run"), NULL, &err), FDS_ERR_IO, &err, "utilities");
    fds_table_free(table);
    fds_utility_free(value);
    s = (stopper){0};
    fit(&t, scratch_path("run"));
    task_free(&t);
}

/* A fit within the progress of another. */
typedef struct {
    const task *t;
    fds_status status;
    bool is_done;
} intruder;

static bool intrude(void *user, const fds_progress *progress) {
    intruder *i = user;
    (void)progress;
    if (!i->is_done) {
        task t = *i->t;
        t.events = (fds_events){0};
        i->is_done = true;
        i->status = try_fit(&t, scratch_path("run"), NULL, NULL);
    }
    return false;
}

static void a_fit_within_a_fit_is_refused(void **state) {
    (void)state;
    task t = task_make("afds");
    char wanted[65], got[65];
    fit(&t, scratch_path("whole"));
    sha256_of(scratch_path("whole/explainer.safetensors"), wanted);
    intruder i = {.t = &t};
    t.events = (fds_events){.progress = intrude, .user = &i};
    fit(&t, scratch_path("run"));
    assert_true(i.is_done);
    assert_int_equal(i.status, FDS_ERR_IO);
    sha256_of(scratch_path("run/explainer.safetensors"), got);
    assert_string_equal(got, wanted);
    task_free(&t);
}

/* ---- folders ---- */

static void a_folder_that_cannot_be_is_named(void **state) {
    (void)state;
    task t = task_make("afds");
    fds_error err = {0};
    char path[5000];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    fds_status status = try_fit(&t, path, NULL, &err);
    assert_true(status != FDS_OK && err.text[0]);
    scratch_write(scratch_path("file"), "x", 1);
    expect_failure(try_fit(&t, scratch_path("file"), NULL, &err), FDS_ERR_IO, &err, "file");
    assert_int_equal(mkdir(scratch_path("run"), 0777), 0);
    scratch_write(scratch_path("run/run.json"), "{\"format\": \"fds table\"}", 23);
    expect_failure(try_fit(&t, scratch_path("run"), NULL, &err), FDS_ERR_FORMAT, &err, "run.json");
    task_free(&t);
}

static size_t found;

static int count_one(const char *path, const struct stat *about, int kind, struct FTW *where) {
    (void)path, (void)about, (void)kind, (void)where;
    found++;
    return 0;
}

/* Files and folders in and below the scratch folder, hidden ones too. */
static size_t count_all(void) {
    found = 0;
    assert_int_equal(nftw(scratch, count_one, 16, FTW_PHYS), 0);
    return found;
}

/* Whoever names the wrong folder finds it as it was. */
static void a_folder_of_others_is_left_alone(void **state) {
    (void)state;
    static const struct {
        const char *file, *text, *words;
    } cases[] = {
        {"thesis.tex", "x", "holds \"thesis.tex\" but no run"},
        {"service.safetensors", "x", "holds \"service.safetensors\" but no run"},
        {"run.json.old", "x", "holds \"run.json.old\" but no run"},
        {"run.json", "{\"jogging\": 5}", "\"format\" must be \"fds run\""},
        {"run.json", "5 km", "run.json"},
        {"utilities/hammer.py", "x", "hammer.py"},
    };
    task t = task_make("afds");
    for (size_t i = 0; i < COUNT(cases); i++) {
        char path[600], before[65], after[65];
        fds_error err = {0};
        assert_int_equal(mkdir(scratch_path("mine"), 0777), 0);
        if (strncmp(cases[i].file, "utilities/", 10) == 0)
            assert_int_equal(mkdir(scratch_path("mine/utilities"), 0777), 0);
        snprintf(path, sizeof path, "%s/mine/%s", scratch, cases[i].file);
        scratch_write(path, cases[i].text, strlen(cases[i].text));
        sha256_of(path, before);
        size_t entries = count_all();
        fds_status status = try_fit(&t, scratch_path("mine"), NULL, &err);
        assert_true(status == FDS_ERR_CONFLICT || status == FDS_ERR_FORMAT);
        expect_in(err.text, cases[i].words);
        assert_int_equal(count_all(), entries);
        sha256_of(path, after);
        assert_string_equal(before, after);
        remove_run(scratch_path("mine"));
    }
    assert_int_equal(mkdir(scratch_path("mine"), 0777), 0); /* an empty one is fine */
    fit(&t, scratch_path("mine"));
    task_free(&t);
}

/* The same samples at another place, or by another name, are the same data. */
static void a_fit_goes_on_with_data_that_has_moved(void **state) {
    (void)state;
    task t = task_make("afds");
    stopper s = {.stop_at = 10};
    t.events = (fds_events){.progress = stop, .user = &s};
    assert_int_equal(try_fit(&t, scratch_path("run"), NULL, NULL), FDS_ERR_CANCELLED);
    fds__free(t.train->source);
    t.train->source = fds__strdup("elsewhere");
    assert_true(fit(&t, scratch_path("run")).was_resumed);
    fds_run *run = open_run(scratch_path("run"));
    assert_string_equal(fds__run_get_info(run).source, "elsewhere");
    fds_run_free(run);
    task_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(each_method_fits_and_answers_add_up),
        IN_SCRATCH(an_explainer_learns),
        IN_SCRATCH(members_of_a_group_get_the_same),
        IN_SCRATCH(few_groups_are_enough),
        IN_SCRATCH(other_settings_fit_too),
        IN_SCRATCH(the_ends_are_those_of_the_game),
        IN_SCRATCH(what_is_not_defined_is_no_number),
        IN_SCRATCH(mistakes_about_the_explainer_show_at_once),
        IN_SCRATCH(a_second_call_does_no_work),
        IN_SCRATCH(other_settings_are_refused_by_name),
        IN_SCRATCH(the_service_model_is_a_row_of_the_table),
        IN_SCRATCH(a_stopped_fit_ends_with_the_same_bits),
        IN_SCRATCH(a_fit_that_was_stopped_does_not_solve_again),
        IN_SCRATCH(a_fit_without_checkpoints_ends_with_the_same_bits),
        IN_SCRATCH(a_fit_stopped_many_times_ends_with_the_same_bits),
        IN_SCRATCH(leftovers_that_are_damaged_do_no_harm),
        IN_SCRATCH(two_threads_fit_as_well_as_one),
        IN_SCRATCH(an_explainers_bits_depend_on_its_own_threads_alone),
        IN_SCRATCH(two_fits_at_once_do_not_mix),
        IN_SCRATCH(a_fit_within_a_fit_is_refused),
        IN_SCRATCH(a_folder_that_cannot_be_is_named),
        IN_SCRATCH(a_folder_of_others_is_left_alone),
        IN_SCRATCH(a_fit_goes_on_with_data_that_has_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
