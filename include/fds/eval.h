/* SPDX-License-Identifier: Apache-2.0
 *
 * How good values are: value loss, agreement, methods compared, reports. Stable within a minor
 * version.
 */
#ifndef FDS_PUBLIC_EVAL_H
#define FDS_PUBLIC_EVAL_H

#include "advanced.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Single measures ---- */

/* Which players a model is trained without, by their values; of equal values the player of the
 * lower number counts as the greater. */
typedef enum fds_removal {
    FDS_REMOVAL_TOP,      /* without the most valuable: the paper's */
    FDS_REMOVAL_BOTTOM,   /* without the least valuable */
    FDS_REMOVAL_KEEP_TOP, /* with the most valuable alone */
} fds_removal;

/* The paper's value loss, input by input: for each share of the players (0 to 1), rounded to whole
 * players, that is removed or added, the cross-entropy -ln p(label) of a sub-model trained on the
 * others. values [players * columns], player by player, columns 1 (the same for all inputs) or one
 * per input of the table; losses[share_count * inputs], share by share. p is not taken below
 * FLT_MIN: a loss is at most 87.3. Sub-models come from the table, so equal coalitions are trained
 * once; the table must keep FDS_STORE_F32, as FDS_STORE_F16 has no numbers below 6e-8. trained (or
 * NULL): how many were not there yet. */
FDS_API fds_status fds_value_loss(fds_table *table, fds_removal way, const double *values,
                                  size_t columns, const uint32_t *labels, const double *shares,
                                  size_t share_count, unsigned threads, double *losses,
                                  size_t *trained, const fds_events *events, fds_error *err);

/* How close values are to reference values. NaN where a measure has no meaning. */
typedef struct fds_agreement {
    double correlation;    /* over players; mean over the columns in which both differ */
    double within;         /* the same over the players whose label is the column's */
    double relative_error; /* |values - truth| / |truth| over all players and columns */
} fds_agreement;

/* values [players * columns] and truth [players * truth_columns], player by player; columns is
 * truth_columns, or 1 for values that are the same for every column of the truth (relative_error
 * is then NaN: their units differ). player_labels[players], labels[truth_columns]. */
FDS_API fds_status fds_agree(const double *values, size_t columns, const double *truth,
                             size_t truth_columns, size_t players, const uint32_t *player_labels,
                             const uint32_t *labels, fds_agreement *out, fds_error *err);

/* The linear datamodeling score of values (TRAK), input by input: Spearman's correlation, over the
 * plan's rows, between the sum of the values of a row's players and what a model trained on them
 * answers. values [players * columns] as for fds_value_loss; answers [rows * inputs], row by row;
 * scores[inputs]: 0 where all sums are equal, NaN where all answers are. */
FDS_API fds_status fds_datamodeling_scores(const fds_plan *plan, const double *values,
                                           size_t columns, const double *answers, size_t inputs,
                                           double *scores, fds_error *err);

/* How well low values find marked players: the probability that a marked one has a lower value than
 * another, ties counting half; NaN when all or none are marked. values[players]. */
FDS_API double fds_ranking_area(const double *values, const bool *is_marked, size_t players);

/* ---- Audits of data ---- */

/* A value for every sample of a dataset, by K-fold valuation with nearest neighbours, to find wrong
 * labels and harmful data: docs/data-audit.md. Shareable. */
typedef struct fds_audit fds_audit;

/* The data that params (of the job "audit") name; or a dataset, which must outlive the audit. */
FDS_API fds_status fds_audit_open(const fds_params *params, const fds_events *events,
                                  fds_audit **out, fds_error *err);
FDS_API fds_status fds_audit_create(const fds_dataset *ds, const fds_params *params,
                                    const fds_events *events, fds_audit **out, fds_error *err);
FDS_API void fds_audit_free(fds_audit *audit);
/* What fds_audit_open would take, as JSON, from a few samples; freed by fds_text_free. */
FDS_API fds_status fds_audit_estimate(const fds_params *params, const fds_events *events,
                                      char **json, fds_error *err);

/* What is said of a sample. Texts belong to the audit. */
typedef struct fds_audit_row {
    size_t sample;             /* its number in the data, from 0 */
    size_t line;               /* in a CSV file, from 1; 0: there is none */
    const char *id, *provider; /* id: of a CSV file, or the path of a picture; or NULL */
    const char *label, *predicted;
    double probability, label_probability; /* of the predicted label, and of its own */
    double value, standard_error;
    bool is_suspect;  /* its value is below 0: predictions are better without it */
    size_t twin;      /* a sample with the same values and another label; sample itself: none */
    char reason[256]; /* in words */
} fds_audit_row;

FDS_API size_t fds_audit_count(const fds_audit *audit);
FDS_API size_t fds_audit_suspects(const fds_audit *audit);
/* The sample of a rank, from 0, the lowest value first; false after the last. */
FDS_API bool fds_audit_row_at(const fds_audit *audit, size_t rank, fds_audit_row *out);
/* All of it as JSON, to be freed by fds_text_free. */
FDS_API fds_status fds_audit_json(const fds_audit *audit, char **out, fds_error *err);
/* Writes rows.csv, providers.csv (where the data names providers), report.html and audit.json to the
 * folder dir, which is new, empty or holds an earlier audit: FDS_ERR_CONFLICT if it holds other files.
 * command: how to repeat it, for the report; or NULL. */
FDS_API fds_status fds_audit_save(const fds_audit *audit, const char *dir, const char *command,
                                  fds_error *err);
/* FDS_ERR_CONFLICT before any work. */
FDS_API fds_status fds_audit_check_folder(const char *dir, fds_error *err);

/* ---- Providers who cheat ---- */

/* Whether samples of a provider are copies of another's: exact, with noise, or moved by a few pixels; and
 * what such providers are paid apart and as one. params: of the job "audit"; "data" may be a run, whose
 * data is audited and whose sub-models value them. clusters: a new file of the providers that belong together, for the
 * parameter "cluster"; png: a picture of the nearest pairs; either may be NULL. *json: the verdict with
 * its evidence (docs/splitting.md), to be freed by fds_text_free. */
FDS_API fds_status fds_audit_duplicates(const fds_params *params, const char *clusters,
                                        const char *png, const fds_events *events, char **json,
                                        fds_error *err);
/* Whether a provider's labels are worse than those of others, in the same way. */
FDS_API fds_status fds_audit_labels(const fds_params *params, const fds_events *events, char **json,
                                    fds_error *err);

/* ---- Methods compared ---- */

/* A case is one set of data with one seed: every method computes values for the same test
 * samples, the value loss of each is measured by retraining, and all of that is kept in a folder,
 * so that an interrupted case goes on where it stopped. A report joins cases. docs/bench.md has
 * the methods, the files and the keys of their JSON. */

/* "fds", ..., "freeshap/sample" (values for each test sample), ...: NULL-terminated. */
FDS_API const char *const *fds_bench_methods(void);
/* Compares methods on sets of data (names or paths), with the parameters of the job "bench": a case
 * for each set and seed in the folder dir, then the report. An interrupted call goes on where
 * it stopped. command: how to repeat it, for the report. The ranks of an MPI job (fds_ranks_begin) take
 * cases in turn; rank 0 writes the report, and the others return when it ends. */
FDS_API fds_status fds_bench(const char *dir, const char *const *data, size_t count,
                             const fds_params *params, const char *command,
                             const fds_events *events, fds_error *err);

/* Writes what these cases value, players' samples, test samples and wrong labels, to a folder for
 * each in dir, as NPY files and task.json: docs/bench.md. Other programs can then compute values for
 * exactly these cases, which the parameter "values" compares. */
FDS_API fds_status fds_bench_export(const char *dir, const char *const *data, size_t count,
                                    const fds_params *params, const fds_events *events,
                                    fds_error *err);

/* Joins the finished cases of dirs (several seeds of one set of data become one) into the folder
 * out: report.html, which needs no other file, report.json and report.csv. command: how to repeat
 * it. */
FDS_API fds_status fds_bench_report(const char *out, const char *const *dirs, size_t count,
                                    const char *command, fds_error *err);

/* One number that differs between two reports. */
typedef struct fds_bench_change {
    const char *data, *method, *what; /* "mnist", "afds", "loss by retrain:10, top 10 %, right" */
    double before, after;
    /* the difference in standard errors of both; INFINITY where these are 0, NaN: not known */
    double sigmas;
} fds_bench_change;

/* Calls on_change for every number that both report.json have and that differs by more than sigmas
 * standard errors. Where an error is not known, as of the correlations of a single seed, a
 * difference of more than a twentieth counts. Also reports what only one of them has, a data set
 * (method "") or a method: what is then "only before" or "only after", and both numbers are NaN.
 * *compared: how many numbers both have. For each data set, first come the differences in what was
 * measured ("players", "tests", "inputs", "seeds", or "seed", the first one that differs) and in
 * settings, with method "" and errors of 0; for texts, such as "network lenet5 before, mlp after",
 * both numbers are NaN. The errors of a single seed are over its test samples alone, which share
 * its models. */
FDS_API fds_status fds_bench_compare(const char *before_path, const char *after_path, double sigmas,
                                     void (*on_change)(void *user, const fds_bench_change *change),
                                     void *user, size_t *compared, fds_error *err);

#ifdef __cplusplus
}
#endif
#endif
