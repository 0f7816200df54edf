/* SPDX-License-Identifier: Apache-2.0
 *
 * What the paper reports: the value loss of Tables 1 (MNIST) and 2 (CIFAR-10), mean and standard
 * deviation over its test samples without the top 5, 10, 15 and 20 % of 100 players, and the
 * seconds of Table 3 (4 cores of an EPYC 7543 and an A30 GPU). It gives no seconds for
 * leave-one-out.
 */
#include "report/report.h"

#include <string.h>

const double report_paper_shares[REPORT_PAPER_SHARES] = {0.05, 0.1, 0.15, 0.2};

enum { SETS = 2, METHODS = 9 };
static const char *const sets[SETS] = {"mnist", "cifar10"};
static const report_paper_row rows[SETS][METHODS] = {
    {{"loo", {0.4560, 0.5058, 0.6983, 0.7456}, {0.1922, 0.2116, 0.3484, 0.3444}, 0},
     {"tmc", {0.4612, 0.5022, 0.6169, 0.7057}, {0.1679, 0.1539, 0.1992, 0.2102}, 15731},
     {"group-testing", {0.4153, 0.5771, 0.7406, 0.8079}, {0.2405, 0.3256, 0.2747, 0.2681}, 9609},
     {"cs-shapley", {0.4622, 0.8972, 0.9363, 0.9830}, {0.3163, 0.6097, 0.5131, 0.5066}, 9938},
     {"freeshap", {0.9218, 1.0582, 1.2546, 1.4576}, {0.1623, 0.1876, 0.2145, 0.2559}, 1628},
     {"fds", {1.1985, 4.0102, 7.0062, 7.8676}, {0.4043, 0.8477, 1.3877, 1.5516}, 2353},
     {"afds", {0.6022, 0.9221, 1.2190, 1.3096}, {0.3048, 0.5201, 0.5477, 0.5291}, 590},
     {"gfds", {0.8551, 1.0644, 1.4101, 1.9470}, {0.1594, 0.2613, 0.7337, 0.7394}, 352},
     {"gfds+", {1.0106, 5.1576, 6.1327, 6.5753}, {0.3636, 1.3814, 1.9130, 1.1251}, 183}},
    {{"loo", {1.0244, 1.0621, 0.9483, 0.9679}, {0.6185, 0.6095, 0.4203, 0.3478}, 0},
     {"tmc", {0.8411, 1.1437, 1.5334, 1.7496}, {0.4231, 0.4781, 1.0600, 1.6123}, 33228},
     {"group-testing", {0.8276, 1.6508, 2.0636, 3.0671}, {0.7340, 1.5221, 1.5102, 2.7041}, 20952},
     {"cs-shapley", {0.5096, 0.5781, 0.7761, 1.1954}, {0.4118, 0.5533, 0.5005, 0.9665}, 21881},
     {"freeshap", {1.6546, 2.2474, 2.9546, 3.3456}, {0.3745, 0.5987, 0.3464, 0.4832}, 3173},
     {"fds", {3.3311, 4.5221, 7.1352, 10.2148}, {1.3348, 1.0119, 1.4439, 1.1338}, 4324},
     {"afds", {1.4386, 2.3015, 2.6126, 3.8321}, {0.9740, 1.0139, 1.5182, 1.4084}, 1120},
     {"gfds", {1.4103, 2.1501, 2.5322, 2.4206}, {1.0369, 1.6841, 1.1527, 1.1234}, 396},
     {"gfds+", {1.9516, 6.8731, 7.8081, 7.8974}, {1.5658, 1.1930, 1.4934, 1.0149}, 259}}};

const report_paper_row *report_paper_find(const char *data, const char *method) {
    for (size_t i = 0; i < SETS * METHODS; i++)
        if (strcmp(sets[i / METHODS], data) == 0 &&
            strcmp(rows[i / METHODS][i % METHODS].method, method) == 0)
            return &rows[i / METHODS][i % METHODS];
    return NULL;
}
