/* SPDX-License-Identifier: Apache-2.0
 * Many predictions paid in memory that does not grow with their number.
 *
 * A batch is gone through twice, to end within one unit of the exact totals; the first pass keeps the
 * answers to the first inputs for the second. With a carry the totals go on after the batch, and one pass
 * is enough. */
#include "pay/pay.h"

enum {
    BLOCK = 256,         /* inputs that are answered together */
    MOST_KEPT = 1 << 20, /* values, and what a prediction takes besides */
    EACH_KEPT = 8
};

typedef struct {
    fds_payer *payer;
    size_t inputs, blocks;
    fds_answer_function answer;
    void *user;
    fds_result **kept; /* (blocks) answers of the first pass, or NULL each */
    size_t kept_inputs;
    fds__pass pass;
} batch;

static fds_status answer_block(batch *b, size_t block, fds_result **out, fds_error *err) {
    const fds_events events = fds__pass_events(&b->pass);
    size_t first = block * BLOCK, count = MIN(b->inputs - first, (size_t)BLOCK);
    fds_status status = b->answer(b->user, first, count, &events, out, err);
    b->pass.done += count;
    return status;
}

/* The first pass: what the batch will come to. */
static fds_status foresee(batch *b, fds_error *err) {
    size_t size = 0;
    b->pass = fds__pass_begin(b->pass.to, b->inputs);
    for (size_t i = 0; i < b->blocks; i++) {
        fds_result *answers;
        TRY(answer_block(b, i, &answers, err));
        size_t count = fds_result_predictions(answers);
        size += count * (fds_result_players(answers) + EACH_KEPT);
        fds_status status = fds_payer_foresee(b->payer, answers, err);
        if (status == FDS_OK && size <= MOST_KEPT) {
            b->kept[i] = answers;
            b->kept_inputs += count;
        } else {
            fds_result_free(answers);
        }
        TRY(status);
    }
    return FDS_OK;
}

static fds_status pay_block(batch *b, size_t block, fds_paid_function paid, fds_error *err) {
    fds_result *answers = b->kept[block];
    fds_payment *payment;
    b->kept[block] = NULL;
    if (!answers)
        TRY(answer_block(b, block, &answers, err));
    fds_status status = fds_payer_pay(b->payer, answers, &payment, err);
    if (status != FDS_OK) {
        fds_result_free(answers);
        return status;
    }
    status = paid(b->user, answers, payment, err);
    fds_payment_free(payment);
    return status;
}

fds_status fds_payer_run(fds_payer *payer, size_t inputs, fds_answer_function answer,
                         fds_paid_function paid, void *user, const fds_events *events,
                         fds_error *err) {
    batch b = {.payer = payer,
               .inputs = inputs,
               .blocks = (inputs + BLOCK - 1) / BLOCK,
               .answer = answer,
               .user = user,
               .pass = {.to = events}};
    TRY(NEW(b.kept, b.blocks, err));
    fds_status status = fds__payer_has_carry(payer) ? FDS_OK : foresee(&b, err);
    b.pass = fds__pass_begin(events, inputs - b.kept_inputs);
    for (size_t i = 0; i < b.blocks && status == FDS_OK; i++)
        status = pay_block(&b, i, paid, err);
    for (size_t i = 0; i < b.blocks; i++)
        fds_result_free(b.kept[i]);
    fds__free(b.kept);
    return status;
}
