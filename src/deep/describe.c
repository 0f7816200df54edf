/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of a graph as descriptors of oneDNN's primitives, and the layouts that these choose.
 *
 * All images between nodes have one layout, the one that oneDNN's convolutions prefer on this
 * processor. A weight has the layout of its gradient, so that the optimizer walks over both; where
 * forward or backward want another layout, the weight is copied just before the operation, which
 * has to read it from memory in any case. */
#include "deep/program.h"

/* ---- descriptors ---- */

static dnnl_memory_desc_t md_make(deep_maker *m, int rank, const dnnl_dims_t dims,
                                  dnnl_data_type_t type, dnnl_format_tag_t tag) {
    dnnl_memory_desc_t md = {0};
    ONEDNN(m, dnnl_memory_desc_init_by_tag(&md, rank, dims, type, tag));
    return md;
}

/* The descriptor of a primitive with the given operations after it. */
static dnnl_primitive_desc_t pd_make(deep_maker *m, const void *desc, bool has_sum, bool has_relu,
                                     dnnl_primitive_desc_t hint) {
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post = NULL;
    dnnl_primitive_desc_t pd = NULL;
    ONEDNN(m, dnnl_primitive_attr_create(&attr));
    ONEDNN(m, dnnl_post_ops_create(&post));
    ONEDNN(m, dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    if (has_sum)
        ONEDNN(m, dnnl_post_ops_append_sum(post, 1));
    if (has_relu)
        ONEDNN(m, dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0));
    ONEDNN(m, dnnl_primitive_attr_set_post_ops(attr, post));
    ONEDNN(m, dnnl_primitive_desc_create(&pd, desc, attr, m->p->engine, hint));
    dnnl_post_ops_destroy(post);
    dnnl_primitive_attr_destroy(attr);
    return pd;
}

/* The layout of images that convolutions prefer here: the one that oneDNN chooses for a convolution
 * of middling size. */
static void choose_tag(deep_maker *m) {
    static const dnnl_format_tag_t tags[] = {dnnl_nChw16c, dnnl_nChw8c, dnnl_nhwc};
    static const uint32_t chunks[] = {16, 8, 16};
    const dnnl_dims_t image = {16, 64, 14, 14}, filter = {64, 64, 3, 3}, one = {1, 1};
    dnnl_memory_desc_t x = md_make(m, 4, image, m->p->type, dnnl_format_tag_any), y = x;
    dnnl_memory_desc_t w = md_make(m, 4, filter, m->p->type, dnnl_format_tag_any);
    dnnl_convolution_desc_t desc;
    ONEDNN(m,
           dnnl_convolution_forward_desc_init(&desc, dnnl_forward_training, dnnl_convolution_direct,
                                              &x, &w, NULL, &y, one, one, one));
    dnnl_primitive_desc_t pd = pd_make(m, &desc, false, false, NULL);
    if (!pd)
        return;
    m->p->tag = dnnl_nchw;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        dnnl_memory_desc_t tagged = md_make(m, 4, image, m->p->type, tags[i]);
        if (dnnl_memory_desc_equal(&tagged, deep_md(pd, dnnl_query_dst_md, 0))) {
            m->p->tag = tags[i];
            m->p->chunk = chunks[i];
            break;
        }
    }
    dnnl_primitive_desc_destroy(pd);
}

static dnnl_memory_desc_t image_md(deep_maker *m, fds_shape s, dnnl_data_type_t type,
                                   dnnl_format_tag_t tag) {
    const dnnl_dims_t dims = {m->exec->batch, s.channels, s.height, s.width};
    return md_make(m, 4, dims, type, tag);
}

/* Images or, folded, one tall image; of taps times as many channels. */
static dnnl_memory_desc_t form_md(deep_maker *m, fds_shape s, bool is_folded, uint32_t taps) {
    dnnl_dims_t dims = {m->exec->batch, (dnnl_dim_t)s.channels * taps, s.height, s.width};
    if (is_folded) {
        dims[2] *= dims[0];
        dims[0] = 1;
    }
    return md_make(m, 4, dims, m->p->type, m->p->tag);
}

/* The strides of a tensor of that form, in the layout of all images. */
static deep_strides form_strides(deep_maker *m, fds_shape s, bool is_folded, uint32_t taps) {
    size_t chunk = m->p->chunk, blocks = s.channels / chunk, depth = (size_t)s.channels * taps;
    size_t pixels = (size_t)s.height * s.width, plane = pixels * chunk, batch = m->exec->batch;
    if (m->p->tag == dnnl_nhwc)
        return (deep_strides){.image = pixels * depth,
                              .block = chunk,
                              .row = s.width * depth,
                              .column = depth,
                              .tap = s.channels};
    deep_strides strides = {.row = s.width * chunk, .column = chunk};
    strides.image = is_folded ? plane : plane * blocks;
    strides.block = is_folded ? plane * batch : plane;
    strides.tap = strides.block * blocks; /* columns are always folded */
    return strides;
}

/* ---- folding ---- */

/* The largest maps, in pixels of the result, on which columns are faster, as measured: for filters
 * of one tap, whose columns are the image itself, and for others, whose columns include padding. */
enum { MAP_ONE_TAP = 16, MAP_MORE_TAPS = 4 };

static bool wants_product(deep_maker *m, const deep_node *n, const deep_spec *spec) {
    uint32_t chunk = m->p->chunk, pixels = n->shape.height * n->shape.width;
    if (!chunk || !n->in || m->exec->graph->nodes[n->in].shape.channels % chunk ||
        n->shape.channels % chunk)
        return false;
    if (n->other && m->exec->batch > 1) /* it adds to another result, in the form of that result */
        return m->p->specs[n->other].is_folded;
    return pixels <=
           (spec->move.kernel[0] * spec->move.kernel[1] == 1 ? MAP_ONE_TAP : MAP_MORE_TAPS);
}

static bool same_place(const deep_move *p) {
    return p->kernel[0] * p->kernel[1] == 1 && p->stride == 1 && p->in[0] == p->out[0] &&
           p->in[1] == p->out[1] && (p->images == 1 || p->from.image == p->to.image) &&
           p->from.block == p->to.block && p->from.row == p->to.row &&
           p->from.column == p->to.column;
}

/* The form in which the node reads its operand (folded or not), and whether that needs a copy. */
static void describe_source(deep_maker *m, const deep_node *n, deep_spec *spec, bool is_folded) {
    uint32_t operand = deep_operand(n);
    const deep_spec *from = &m->p->specs[operand];
    fds_shape in = m->exec->graph->nodes[operand].shape;
    deep_move *p = &spec->move;
    spec->source = from->result;
    if (!m->p->chunk || in.channels % m->p->chunk || from->result.ndims != 4)
        return; /* never folded */
    fds_shape out =
        spec->is_product ? (fds_shape){in.channels, n->shape.height, n->shape.width} : in;
    if (!spec->is_product) {
        p->kernel[0] = p->kernel[1] = p->stride = 1;
        p->padding[0] = p->padding[1] = 0;
    }
    uint32_t taps = p->kernel[0] * p->kernel[1];
    p->images = m->exec->batch;
    p->chunk = m->p->chunk;
    p->blocks = in.channels / p->chunk;
    p->in[0] = in.height, p->in[1] = in.width;
    p->out[0] = out.height, p->out[1] = out.width;
    p->from = form_strides(m, in, from->is_folded, 1);
    p->to = form_strides(m, out, is_folded, taps);
    spec->is_moved = !same_place(p);
    spec->source = form_md(m, out, is_folded, taps);
}

/* ---- nodes: forward, then backward ---- */

typedef struct {
    dnnl_memory_desc_t x, w, b, y;
    dnnl_dims_t stride, left, right; /* of a window */
} parts;

static void window(const deep_node *n, fds_shape in, parts *q) {
    const uint32_t sizes[] = {in.height, in.width}, outs[] = {n->shape.height, n->shape.width};
    for (int axis = 0; axis < 2; axis++) {
        q->stride[axis] = n->stride;
        q->left[axis] = n->padding[axis];
        int64_t right = (int64_t)(outs[axis] - 1) * n->stride + n->kernel[axis] - sizes[axis] -
                        n->padding[axis];
        q->right[axis] = MAX(right, 0);
    }
}

static void keep(deep_maker *m, uint32_t tensor, const dnnl_memory_desc_t *kept,
                 const dnnl_memory_desc_t *plain) {
    m->p->kept[tensor] = *kept;
    m->p->plain[tensor] = *plain;
}

typedef union {
    dnnl_convolution_desc_t conv;
    dnnl_inner_product_desc_t fc;
} product_desc;

/* Source, weights, bias and result of a convolution or linear layer. oneDNN chooses the layout of
 * the weights, and of the network's input for the first layer. */
static parts product_parts(deep_maker *m, const deep_node *n, const deep_spec *spec) {
    parts q = {0};
    fds_shape in = m->exec->graph->nodes[n->in].shape;
    bool is_conv = n->kind == DEEP_CONV, is_last = m->node + 1 == m->exec->graph->count;
    dnnl_dims_t dims = {n->shape.channels, in.channels, in.height, in.width};
    const dnnl_dims_t bias = {n->shape.channels}, flat = {m->exec->batch, n->shape.channels};
    if (spec->is_product) {
        dims[1] *= spec->move.kernel[0] * spec->move.kernel[1];
        dims[2] = dims[3] = q.stride[0] = q.stride[1] = 1;
    } else if (is_conv) {
        dims[2] = n->kernel[0];
        dims[3] = n->kernel[1];
        window(n, in, &q);
    }
    q.x = n->in ? spec->source : image_md(m, in, m->p->type, dnnl_format_tag_any);
    int rank = q.x.ndims;
    q.w = md_make(m, rank, dims, m->p->type, dnnl_format_tag_any);
    q.b = md_make(m, 1, bias, dnnl_f32, dnnl_a);
    q.y = is_conv ? form_md(m, n->shape, spec->is_folded, 1)
                  : md_make(m, 2, flat, is_last ? dnnl_f32 : m->p->type, dnnl_ab);
    dnnl_memory_desc_t plain = md_make(m, rank, dims, dnnl_f32, rank == 4 ? dnnl_abcd : dnnl_ab);
    keep(m, n->tensor, &plain, &plain); /* kept: corrected later */
    if (n->has_bias)
        keep(m, n->tensor + 1, &q.b, &q.b);
    return q;
}

/* oneDNN 2.6's convolution of one tap in bf16 gives wrong results, forward and backward by data, on
 * maps of exactly 5 pixels. All other sizes that were compared with plain sums are right. */
static bool is_unsafe(const deep_maker *m, const parts *q) {
    return m->p->type == dnnl_bf16 && q->w.ndims == 4 && q->w.dims[2] * q->w.dims[3] == 1 &&
           q->y.ndims == 4 && q->y.dims[2] * q->y.dims[3] == 5;
}

static void describe_product(deep_maker *m, const deep_node *n, deep_spec *spec) {
    if (n->kind == DEEP_CONV) {
        deep_graph_crop(m->exec->graph, n, spec->move.kernel, spec->move.padding);
        spec->move.stride = n->stride;
        spec->is_product = spec->is_folded = wants_product(m, n, spec);
    }
    if (n->in)
        describe_source(m, n, spec, spec->is_product);
    parts q = product_parts(m, n, spec);
    const dnnl_memory_desc_t *b = n->has_bias ? &q.b : NULL;
    dnnl_prop_kind_t kind = m->exec->is_training ? dnnl_forward_training : dnnl_forward_inference;
    product_desc d;
    if (n->kind == DEEP_CONV)
        ONEDNN(m, dnnl_convolution_forward_desc_init(&d.conv, kind, dnnl_convolution_direct, &q.x,
                                                     &q.w, b, &q.y, q.stride, q.left, q.right));
    else
        ONEDNN(m, dnnl_inner_product_forward_desc_init(&d.fc, kind, &q.x, &q.w, b, &q.y));
    spec->forward = pd_make(m, &d, n->other != 0, n->has_relu, NULL);
    m->is_unsafe |= is_unsafe(m, &q);
    if (m->status != FDS_OK)
        return;
    spec->result = q.y;
    if (!n->in) { /* the first layer chooses the input's layout */
        m->p->specs[0].result = *deep_md(spec->forward, dnnl_query_src_md, 0);
        spec->source = m->p->specs[0].result;
    }
    if (!m->exec->is_training)
        m->p->kept[n->tensor] = *deep_md(spec->forward, dnnl_query_weights_md, 0);
}

static void describe_product_backward(deep_maker *m, const deep_node *n, deep_spec *spec) {
    parts q = product_parts(m, n, spec);
    const dnnl_memory_desc_t *b = n->has_bias ? &q.b : NULL;
    const dnnl_memory_desc_t *plain = &m->p->plain[n->tensor];
    dnnl_memory_desc_t x = n->in ? spec->source : m->p->specs[0].result;
    dnnl_memory_desc_t gradient =
        md_make(m, plain->ndims, plain->dims, dnnl_f32, dnnl_format_tag_any);
    product_desc d;
    q.y.data_type = m->p->type;
    if (n->kind == DEEP_CONV)
        ONEDNN(m, dnnl_convolution_backward_weights_desc_init(&d.conv, dnnl_convolution_direct, &x,
                                                              &gradient, b, &q.y, q.stride, q.left,
                                                              q.right));
    else
        ONEDNN(m, dnnl_inner_product_backward_weights_desc_init(&d.fc, &x, &gradient, b, &q.y));
    spec->backward_weights = pd_make(m, &d, false, false, spec->forward);
    if (m->status != FDS_OK)
        return;
    m->p->kept[n->tensor] = *deep_md(spec->backward_weights, dnnl_query_diff_weights_md, 0);
    if (!n->in)
        return;
    if (n->kind == DEEP_CONV)
        ONEDNN(m, dnnl_convolution_backward_data_desc_init(&d.conv, dnnl_convolution_direct, &x,
                                                           &q.w, &q.y, q.stride, q.left, q.right));
    else
        ONEDNN(m, dnnl_inner_product_backward_data_desc_init(&d.fc, &x, &q.w, &q.y));
    spec->backward = pd_make(m, &d, false, false, spec->forward);
}

static void describe_norm(deep_maker *m, const deep_node *n, deep_spec *spec) {
    const float epsilon = 1e-5f;
    const dnnl_dims_t channels = {n->shape.channels};
    unsigned flags = dnnl_use_scale | dnnl_use_shift | (n->has_relu ? dnnl_fuse_norm_relu : 0);
    dnnl_batch_normalization_desc_t d;
    dnnl_memory_desc_t each = md_make(m, 1, channels, dnnl_f32, dnnl_a);
    for (uint32_t i = 0; i < 4; i++)
        keep(m, n->tensor + i, &each, &each);
    spec->result = spec->source = m->p->specs[n->in].result;
    spec->is_folded = m->p->specs[n->in].is_folded;
    ONEDNN(m, dnnl_batch_normalization_forward_desc_init(&d, dnnl_forward_training, &spec->result,
                                                         epsilon, flags));
    spec->forward = pd_make(m, &d, false, false, NULL);
    ONEDNN(m, dnnl_batch_normalization_backward_desc_init(&d, dnnl_backward, &spec->result,
                                                          &spec->result, epsilon, flags));
    spec->backward = pd_make(m, &d, false, false, spec->forward);
}

static void describe_pool(deep_maker *m, const deep_node *n, deep_spec *spec) {
    bool is_max = n->kind == DEEP_MAXPOOL, is_training = m->exec->is_training;
    fds_shape in = m->exec->graph->nodes[n->in].shape;
    deep_node whole = *n;
    parts q = {0};
    if (!is_max) {
        whole.kernel[0] = in.height;
        whole.kernel[1] = in.width;
        whole.stride = 1;
    }
    window(&whole, in, &q);
    const dnnl_dims_t kernel = {whole.kernel[0], whole.kernel[1]};
    dnnl_alg_kind_t kind = is_max ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
    dnnl_pooling_desc_t d;
    describe_source(m, n, spec, false);
    q.x = spec->source;
    spec->result = image_md(m, n->shape, m->p->type, m->p->tag);
    ONEDNN(m, dnnl_pooling_forward_desc_init(
                  &d, is_training ? dnnl_forward_training : dnnl_forward_inference, kind, &q.x,
                  &spec->result, q.stride, kernel, q.left, q.right));
    spec->forward = pd_make(m, &d, false, false, NULL);
    if (!is_training)
        return;
    ONEDNN(m, dnnl_pooling_backward_desc_init(&d, kind, &q.x, &spec->result, q.stride, kernel,
                                              q.left, q.right));
    spec->backward = pd_make(m, &d, false, false, spec->forward);
}

void deep_describe(deep_maker *m) {
    const deep_graph *g = m->exec->graph;
    choose_tag(m);
    m->p->image = image_md(m, g->nodes[0].shape, dnnl_f32, dnnl_nchw);
    for (m->node = 1; m->node < g->count && m->status == FDS_OK; m->node++) {
        const deep_node *n = &g->nodes[m->node];
        deep_spec *spec = &m->p->specs[m->node];
        switch (n->kind) {
        case DEEP_CONV:
        case DEEP_FC:
            describe_product(m, n, spec);
            if (m->exec->is_training)
                describe_product_backward(m, n, spec);
            break;
        case DEEP_NORM:
            describe_norm(m, n, spec);
            break;
        case DEEP_MAXPOOL:
        case DEEP_AVGPOOL:
            describe_pool(m, n, spec);
            break;
        case DEEP_ADD:
            spec->result = m->p->specs[n->in].result;
            spec->is_folded = m->p->specs[n->in].is_folded;
            describe_source(m, n, spec, spec->is_folded);
            break;
        case DEEP_INPUT:
            break;
        }
    }
}
