/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling and rectifying for one width of vector. kernels.c includes this once for each width, with
 *
 *     MAP_NAME(name)   the names of the functions
 *     MAP_TYPE         the vector, of MAP_WIDTH floats
 *     MAP_OP(name)     its operations
 *     MAP_LANES        the number of lanes
 *
 * The gradient goes to the first of the greatest numbers of a window, row by row, and nowhere if
 * the rectifier gave 0. */

INLINE MAP_TYPE MAP_NAME(window_max)(const float *window, uint32_t pool, size_t row,
                                     size_t column) {
    MAP_TYPE best = MAP_OP(load)(window);
    UNROLL
    for (uint32_t i = 0; i < pool; i++) {
        UNROLL
        for (uint32_t j = 0; j < pool; j++)
            best = MAP_OP(max)(MAP_OP(load)(window + i * row + j * column), best);
    }
    return best;
}

INLINE void MAP_NAME(map_row_forward)(const fds__map *p, const uint32_t pool, const float *x,
                                      float *y) {
    const size_t row = p->x_row, column = p->x_column, y_column = p->y_column;
    const uint32_t lanes = MAP_LANES, width = p->width;
    const MAP_TYPE least = MAP_OP(set1)(p->relu ? 0.0f : -INFINITY);
    for (uint32_t w = 0; w < width; w++)
        for (uint32_t l = 0; l < lanes; l += MAP_WIDTH) {
            const float *window = x + w * pool * column + l;
            MAP_TYPE best = MAP_NAME(window_max)(window, pool, row, column);
            MAP_OP(store)(y + w * y_column + l, MAP_OP(max)(best, least));
        }
}

INLINE void MAP_NAME(map_row_backward)(const fds__map *p, const uint32_t pool, const float *x,
                                       const float *y, const float *dy, float *dx) {
    const size_t row = p->x_row, column = p->x_column, y_column = p->y_column;
    const uint32_t lanes = MAP_LANES, width = p->width;
    const bool relu = p->relu;
    for (uint32_t w = 0; w < width; w++)
        for (uint32_t l = 0; l < lanes; l += MAP_WIDTH) {
            const float *window = x + w * pool * column + l;
            const MAP_TYPE best = MAP_NAME(window_max)(window, pool, row, column);
            MAP_TYPE left = MAP_OP(load)(dy + w * y_column + l);
            if (relu)
                left = MAP_OP(if_positive)(MAP_OP(load)(y + w * y_column + l), left);
            UNROLL
            for (uint32_t i = 0; i < pool; i++) {
                UNROLL
                for (uint32_t j = 0; j < pool; j++) {
                    const size_t at = i * row + j * column;
                    const MAP_TYPE value = MAP_OP(load)(window + at);
                    MAP_OP(store)
                    (dx + w * pool * column + l + at, MAP_OP(if_equal)(value, best, left));
                    left = MAP_OP(unless_equal)(value, best, left);
                }
            }
        }
}

/* The usual window is 2 x 2: a constant lets the compiler unroll it. */
static void MAP_NAME(map_forward)(const fds__map *p) {
    for (uint32_t n = 0; n < p->channels * p->height; n++) {
        const uint32_t c = n / p->height, h = n % p->height;
        const float *x = p->x + c * p->x_plane + (size_t)h * p->pool * p->x_row;
        float *y = p->y + c * p->y_plane + h * p->y_row;
        if (p->pool == 2)
            MAP_NAME(map_row_forward)(p, 2, x, y);
        else
            MAP_NAME(map_row_forward)(p, p->pool, x, y);
    }
}

static void MAP_NAME(map_backward)(const fds__map *p) {
    for (uint32_t n = 0; n < p->channels * p->height; n++) {
        const uint32_t c = n / p->height, h = n % p->height;
        const size_t x = c * p->x_plane + (size_t)h * p->pool * p->x_row;
        const size_t y = c * p->y_plane + h * p->y_row;
        if (p->pool == 2)
            MAP_NAME(map_row_backward)(p, 2, p->x + x, p->y + y, p->dy + y, p->dx + x);
        else
            MAP_NAME(map_row_backward)(p, p->pool, p->x + x, p->y + y, p->dy + y, p->dx + x);
    }
}

#undef MAP_NAME
#undef MAP_TYPE
#undef MAP_WIDTH
#undef MAP_OP
#undef MAP_LANES
