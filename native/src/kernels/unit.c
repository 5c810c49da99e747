/* All kernels as one instruction set computes them: this file is compiled once for each, with HEDGEROW_SET its name. */
#include "products.c"

#include "dense.c"
#include "elementwise.c"
#include "channels.c"
#include "chance.c"
#include "clipping.c"
#include "groups.c"
#include "loss.c"
#include "masks.c"
#include "moving.c"
#include "pooling.c"
#include "resampling.c"
#include "rows.c"
#include "standardise.c"
#include "update.c"
#include "by_pixels.c"
#include "by_channels.c"
#include "depthwise.c"
#include "winograd.c"
#include "by_samples.c"
#include "sample_norms.c"
#include "sample_weights.c"
#include "spots.c"

#define TEXT_OF(word) #word
#define TEXT(word) TEXT_OF(word)
#define NAMED_OF(name, set) name##set
#define NAMED(name, set) NAMED_OF(name, set)

#ifndef HEDGEROW_SET
#error "Name the instruction set: -DHEDGEROW_SET=baseline or avx2."
#endif

#ifndef HEDGEROW_SET_NAME
#if defined(__aarch64__) || defined(__ARM_NEON)
#define HEDGEROW_SET_NAME "neon"
#elif defined(__x86_64__)
#define HEDGEROW_SET_NAME "sse2"
#else
#define HEDGEROW_SET_NAME "generic"
#endif
#endif

#define WRITES(at) (1U << (at))

static const hedgerow_kernel KERNELS[] = {
    {"product", WRITES(2), check_product, run_product},
    {"take_product", WRITES(2), check_take_product, run_take_product},
    {"column_sums", WRITES(1), check_column_sums, run_column_sums},
    {"relu", WRITES(1), check_one_to_one, run_relu},
    {"relu6", WRITES(1), check_one_to_one, run_relu6},
    {"scale", WRITES(1), check_one_to_one, run_scale},
    {"copy_floats", WRITES(1), check_one_to_one, run_copy_floats},
    {"hswish", WRITES(1), check_one_to_one, run_hswish},
    {"sigmoid", WRITES(1), check_one_to_one, run_sigmoid},
    {"tanh", WRITES(1), check_one_to_one, run_tanh},
    {"silu", WRITES(1), check_one_to_one, run_silu},
    {"relu_grad_from_result", WRITES(2), check_two_to_one, run_relu_grad_from_result},
    {"relu6_grad_from_result", WRITES(2), check_two_to_one, run_relu6_grad_from_result},
    {"add", WRITES(2), check_two_to_one, run_add},
    {"mul", WRITES(2), check_two_to_one, run_mul},
    {"tanh_grad", WRITES(2), check_two_to_one, run_tanh_grad},
    {"sigmoid_grad", WRITES(2), check_two_to_one, run_sigmoid_grad},
    {"silu_grad", WRITES(2), check_two_to_one, run_silu_grad},
    {"hswish_grad", WRITES(2), check_two_to_one, run_hswish_grad},
    {"gelu", WRITES(1) | WRITES(2), check_gelu, run_gelu},
    {"zero", WRITES(0), check_in_place, run_zero},
    {"fill", WRITES(0), check_in_place, run_fill},
    {"accumulate", WRITES(1), check_one_to_one, run_accumulate},
    {"add_repeated", WRITES(2), check_add_repeated, run_add_repeated},
    {"rectify", WRITES(1) | WRITES(2), check_rectify, run_rectify},
    {"let_through", WRITES(2), check_let_through, run_let_through},
    {"cross_entropy", WRITES(2) | WRITES(3), check_cross_entropy, run_cross_entropy},
    {"cross_entropy_grad", WRITES(2), check_cross_entropy_grad, run_cross_entropy_grad},
    {"mse", WRITES(2), check_compared, run_mse},
    {"mse_grad", WRITES(2), check_two_to_one, run_mse_grad},
    {"bce", WRITES(2), check_compared, run_bce},
    {"bce_grad", WRITES(2), check_two_to_one, run_bce_grad},
    {"strand_sums", WRITES(1), check_strand_sums, run_strand_sums},
    {"join", WRITES(1), check_join, run_join},
    {"strand_moments", WRITES(1), check_strand_moments, run_strand_moments},
    {"settle_norm", WRITES(1) | WRITES(4) | WRITES(5), check_settle_norm, run_settle_norm},
    {"settle_running", WRITES(4) | WRITES(5), check_settle_running, run_settle_running},
    {"stretch", WRITES(3), check_stretch, run_stretch},
    {"strand_products", WRITES(3) | WRITES(4), check_strand_products, run_strand_products},
    {"settle_grad", WRITES(4) | WRITES(5) | WRITES(6), check_settle_grad, run_settle_grad},
    {"blend", WRITES(5), check_blend, run_blend},
    {"follow", WRITES(1) | WRITES(2), check_follow, run_follow},
    {"row_sums", WRITES(1), check_row_sums, run_row_sums},
    {"copy", WRITES(1), check_copy, run_copy},
    {"middle_sums", WRITES(1), check_middle_sums, run_middle_sums},
    {"max_pool", WRITES(1) | WRITES(2), check_max_pool, run_max_pool},
    {"max_pool_grad", WRITES(2), check_max_pool_grad, run_max_pool_grad},
    {"mean_pool", WRITES(1), check_mean_pool, run_mean_pool},
    {"mean_pool_grad", WRITES(1), check_mean_pool_grad, run_mean_pool_grad},
    {"row_norm", WRITES(3) | WRITES(4), check_row_norm, run_row_norm},
    {"row_norm_grad", WRITES(4), check_row_norm_grad, run_row_norm_grad},
    {"row_norm_grad_weight", WRITES(3), check_row_norm_grad_weight, run_row_norm_grad_weight},
    {"group_norm", WRITES(3) | WRITES(4), check_group_norm, run_group_norm},
    {"group_norm_grad", WRITES(4), check_group_norm_grad, run_group_norm_grad},
    {"group_products", WRITES(3), check_group_products, run_group_products},
    {"standardise", WRITES(3), check_standardise, run_standardise},
    {"take_in", WRITES(1) | WRITES(2), check_take_in, run_take_in},
    {"resample", WRITES(1), check_resample, run_resample},
    {"resample_grad", WRITES(1), check_resample_grad, run_resample_grad},
    {"dropout", WRITES(1), check_dropout, run_dropout},
    {"perturbed", WRITES(1), check_perturbed, run_perturbed},
    {"descend", WRITES(1), check_descend, run_descend},
    {"accumulate_slope", WRITES(2), check_accumulate_slope, run_accumulate_slope},
    {"softmax", WRITES(1), check_softmax, run_softmax},
    {"softmax_grad", WRITES(2), check_softmax_grad, run_softmax_grad},
    {"attention", WRITES(3) | WRITES(4), check_attention, run_attention},
    {"attention_grad_scores", WRITES(4) | WRITES(5), check_attention_grad_scores, run_attention_grad_scores},
    {"attention_grad_values", WRITES(2), check_attention_grad_values, run_attention_grad_values},
    {"sgd", WRITES(1) | WRITES(3), check_sgd, run_sgd},
    {"adam", WRITES(1) | WRITES(3) | WRITES(4), check_adam, run_adam},
    {"adam8bit", WRITES(1) | WRITES(3) | WRITES(4) | WRITES(5) | WRITES(6), check_adam8bit, run_adam8bit},
    {"count", WRITES(0), check_count, run_count},
    {"strand_squares", WRITES(1), check_strand_squares, run_strand_squares},
    {"join_squares", WRITES(2), check_join_squares, run_join_squares},
    {"clip_factor", WRITES(1), check_clip_factor, run_clip_factor},
    {"embedding", WRITES(2), check_embedding, run_embedding},
    {"embedding_grad", WRITES(2), check_embedding_grad, run_embedding_grad},
    {"sgd_rows", WRITES(2), check_sgd_rows, run_sgd_rows},
    {"conv_forward", WRITES(2), check_conv_forward, run_conv_forward},
    {"conv_grad_input", WRITES(2), check_conv_grad_input, run_conv_grad_input},
    {"conv_grad_weight", WRITES(2), check_conv_grad_weight, run_conv_grad_weight},
    {"channels_forward", WRITES(2) | WRITES(4), check_channels_forward, run_channels_forward},
    {"channels_grad_input", WRITES(2) | WRITES(4), check_channels_grad_input, run_channels_grad_input},
    {"channels_grad_weight", WRITES(2) | WRITES(4), check_channels_grad_weight, run_channels_grad_weight},
    {"entry_forward", WRITES(2), check_entry_forward, run_entry_forward},
    {"entry_grad_weight", WRITES(2), check_entry_grad_weight, run_entry_grad_weight},
    {"depthwise_forward", WRITES(2), check_depthwise_forward, run_depthwise_forward},
    {"depthwise_grad_input", WRITES(2), check_depthwise_grad_input, run_depthwise_grad_input},
    {"depthwise_grad_weight", WRITES(2), check_depthwise_grad_weight, run_depthwise_grad_weight},
    {"join_turned", WRITES(1), check_join_turned, run_join_turned},
    {"wino_image", WRITES(1), check_planes, run_wino_image},
    {"wino_gradient", WRITES(1), check_planes, run_wino_gradient},
    {"wino_result", WRITES(1), check_planes_back, run_wino_result},
    {"wino_back", WRITES(1), check_planes_back, run_wino_back},
    {"wino_weight", WRITES(1), check_wino_weight, run_wino_weight},
    {"wino_weight_back", WRITES(1), check_wino_weight_back, run_wino_weight_back},
    {"products", WRITES(2), check_products, run_products},
    {"plain_forward", WRITES(2) | WRITES(4), check_plain_forward, run_plain_forward},
    {"plain_grad_input", WRITES(2) | WRITES(4), check_plain_grad_input, run_plain_grad_input},
    {"plain_grad_weight", WRITES(2) | WRITES(4), check_plain_grad_weight, run_plain_grad_weight},
    {"spots", WRITES(2), check_spots, run_spots},
    {"runs_norm", WRITES(3) | WRITES(4) | WRITES(5), check_runs_norm, run_runs_norm},
    {"runs_stretch", WRITES(5) | WRITES(6), check_runs_stretch, run_runs_stretch},
    {"runs_norm_grad", WRITES(6) | WRITES(7), check_runs_norm_grad, run_runs_norm_grad},
    {"runs_norm_grad_weight", WRITES(4) | WRITES(5), check_runs_norm_grad_weight, run_runs_norm_grad_weight},
};

const hedgerow_table NAMED(hedgerow_table_, HEDGEROW_SET) = {HEDGEROW_SET_NAME, KERNELS,
                                                             (int32_t)(sizeof KERNELS / sizeof KERNELS[0])};
