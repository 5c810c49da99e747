/* Winograd's F(2x2, 3x3) of images by pixels, with its exact gradients (Lavin and Gray, arXiv 1509.09308).
 *
 * Tiles of 4x4 pixels that overlap by two become sixteen planes (position, tile, channel), a gap between any two so
 * that they do not share cache lines. Sizes: rows and columns of the image, numbers of a pixel (samples times
 * channels), floats from one plane to the next. Cut by tiles.
 */
#include "products.h"
#include "windows.h"

enum { WINO_H, WINO_W, WINO_PIXEL, WINO_PLANE };
enum { PLANES = 16, RUN = 1024 };

static const float NOTHING[RUN];

static int64_t check_tiles(checker *check) {
    int64_t h = positive(check, WINO_H), w = positive(check, WINO_W), pixel = positive(check, WINO_PIXEL);
    refuse_unless(check, h % 2 == 0 && w % 2 == 0 && h < 1 << 20 && w < 1 << 20, HEDGEROW_WRONG_SIZES);
    int64_t tiles = times(check, h / 2, w / 2);
    refuse_unless(check, check->record->sizes[WINO_PLANE] >= times(check, tiles, pixel), HEDGEROW_WRONG_SIZES);
    return tiles;
}

static hedgerow_verdict check_planes(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    *units = check_tiles(&check);
    int64_t image = times(&check, times(&check, record->sizes[WINO_H], record->sizes[WINO_W]), record->sizes[WINO_PIXEL]);
    needs_floats(&check, 0, image);
    needs_floats(&check, 1, times(&check, PLANES, record->sizes[WINO_PLANE]));
    return check.verdict;
}

static hedgerow_verdict check_planes_back(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    *units = check_tiles(&check);
    int64_t image = times(&check, times(&check, record->sizes[WINO_H], record->sizes[WINO_W]), record->sizes[WINO_PIXEL]);
    needs_floats(&check, 0, times(&check, PLANES, record->sizes[WINO_PLANE]));
    needs_floats(&check, 1, image);
    return check.verdict;
}

#define EACH_RUN(pixel, at, count) for (int64_t at = 0, count; at < (pixel) && (count = least(RUN, (pixel)-at)); at += RUN)

/* A vector, or a number, of a run: the same arithmetic for whole vectors and for what is left. */
#define EACH_LANE(count, at, one_vector, one_number)                                                                   \
    {                                                                                                                  \
        int64_t at = 0;                                                                                                \
        for (; at + LANES <= (count); at += LANES)                                                                     \
            one_vector;                                                                                                \
        for (; at < (count); at++)                                                                                     \
            one_number;                                                                                                \
    }

/* B' d B of four by four, in place: the map of images. */
#define MAP_IMAGE(type, d)                                                                                             \
    for (int at4 = 0; at4 < 4; at4++) {                                                                                \
        type one = (d)[at4], two = (d)[4 + at4], three = (d)[8 + at4], four = (d)[12 + at4];                           \
        (d)[at4] = one - three, (d)[4 + at4] = two + three, (d)[8 + at4] = three - two, (d)[12 + at4] = two - four;    \
    }                                                                                                                  \
    for (int at4 = 0; at4 < 16; at4 += 4) {                                                                            \
        type one = (d)[at4], two = (d)[at4 + 1], three = (d)[at4 + 2], four = (d)[at4 + 3];                            \
        (d)[at4] = one - three, (d)[at4 + 1] = two + three, (d)[at4 + 2] = three - two, (d)[at4 + 3] = two - four;     \
    }

static inline void image_vector(const float *const *from, float *to, int64_t plane, int64_t at) {
    vec d[16];
    for (int place = 0; place < 16; place++)
        d[place] = load(from[place] + at);
    MAP_IMAGE(vec, d)
    for (int place = 0; place < 16; place++)
        store(to + place * plane + at, d[place]);
}

static inline void image_number(const float *const *from, float *to, int64_t plane, int64_t at) {
    float d[16];
    for (int place = 0; place < 16; place++)
        d[place] = from[place][at];
    MAP_IMAGE(float, d)
    for (int place = 0; place < 16; place++)
        to[place * plane + at] = d[place];
}

/* Operands: image, planes. */
static void run_wino_image(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes;
    int64_t h = s[WINO_H], w = s[WINO_W], pixel = s[WINO_PIXEL], plane = s[WINO_PLANE];
    for (int64_t tile = first; tile < end; tile++)
        EACH_RUN(pixel, start, count) {
            const float *from[16];
            for (int place = 0; place < 16; place++) {
                int64_t row = tile / (w / 2) * 2 + place / 4 - 1, column = tile % (w / 2) * 2 + place % 4 - 1;
                bool inside = row >= 0 && row < h && column >= 0 && column < w;
                from[place] = inside ? (const float *)call->at[0] + (row * w + column) * pixel + start : NOTHING;
            }
            float *to = (float *)call->at[1] + tile * pixel + start;
            EACH_LANE(count, at, image_vector(from, to, plane, at), image_number(from, to, plane, at))
        }
    (void)part;
}

/* A' m A: from four by four products to two by two pixels. */
#define MAP_RESULT(type, m, y)                                                                                         \
    type half[8];                                                                                                      \
    for (int at4 = 0; at4 < 4; at4++) {                                                                                \
        half[at4] = (m)[at4] + (m)[4 + at4] + (m)[8 + at4];                                                            \
        half[4 + at4] = (m)[4 + at4] - (m)[8 + at4] - (m)[12 + at4];                                                   \
    }                                                                                                                  \
    for (int at2 = 0; at2 < 2; at2++) {                                                                                \
        (y)[2 * at2] = half[4 * at2] + half[4 * at2 + 1] + half[4 * at2 + 2];                                          \
        (y)[2 * at2 + 1] = half[4 * at2 + 1] - half[4 * at2 + 2] - half[4 * at2 + 3];                                  \
    }

static inline void result_vector(const float *from, int64_t plane, float *const *to, int64_t at) {
    vec m[16], y[4];
    for (int place = 0; place < 16; place++)
        m[place] = load(from + place * plane + at);
    MAP_RESULT(vec, m, y)
    for (int place = 0; place < 4; place++)
        store(to[place] + at, y[place]);
}

static inline void result_number(const float *from, int64_t plane, float *const *to, int64_t at) {
    float m[16], y[4];
    for (int place = 0; place < 16; place++)
        m[place] = from[place * plane + at];
    MAP_RESULT(float, m, y)
    for (int place = 0; place < 4; place++)
        to[place][at] = y[place];
}

static void quarters(float *image, int64_t w, int64_t pixel, int64_t tile, float **to) {
    for (int place = 0; place < 4; place++)
        to[place] = image + ((tile / (w / 2) * 2 + place / 2) * w + tile % (w / 2) * 2 + place % 2) * pixel;
}

/* Operands: planes of products, result. */
static void run_wino_result(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes;
    int64_t pixel = s[WINO_PIXEL], plane = s[WINO_PLANE];
    for (int64_t tile = first; tile < end; tile++) {
        float *to[4];
        quarters(call->at[1], s[WINO_W], pixel, tile, to);
        const float *from = (const float *)call->at[0] + tile * pixel;
        EACH_LANE(pixel, at, result_vector(from, plane, to, at), result_number(from, plane, to, at))
    }
    (void)part;
}

/* A dy A': from two by two gradients to four by four. */
#define MAP_GRADIENT(type, y, m)                                                                                       \
    type half[8];                                                                                                      \
    for (int at2 = 0; at2 < 2; at2++) {                                                                                \
        half[at2] = (y)[at2], half[2 + at2] = (y)[at2] + (y)[2 + at2];                                                 \
        half[4 + at2] = (y)[at2] - (y)[2 + at2], half[6 + at2] = -(y)[2 + at2];                                        \
    }                                                                                                                  \
    for (int at4 = 0; at4 < 4; at4++) {                                                                                \
        (m)[4 * at4] = half[2 * at4], (m)[4 * at4 + 1] = half[2 * at4] + half[2 * at4 + 1];                            \
        (m)[4 * at4 + 2] = half[2 * at4] - half[2 * at4 + 1], (m)[4 * at4 + 3] = -half[2 * at4 + 1];                   \
    }

static inline void gradient_vector(float *const *from, float *to, int64_t plane, int64_t at) {
    vec y[4], m[16];
    for (int place = 0; place < 4; place++)
        y[place] = load(from[place] + at);
    MAP_GRADIENT(vec, y, m)
    for (int place = 0; place < 16; place++)
        store(to + place * plane + at, m[place]);
}

static inline void gradient_number(float *const *from, float *to, int64_t plane, int64_t at) {
    float y[4], m[16];
    for (int place = 0; place < 4; place++)
        y[place] = from[place][at];
    MAP_GRADIENT(float, y, m)
    for (int place = 0; place < 16; place++)
        to[place * plane + at] = m[place];
}

/* Operands: gradient of the result, planes. */
static void run_wino_gradient(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes;
    int64_t pixel = s[WINO_PIXEL], plane = s[WINO_PLANE];
    for (int64_t tile = first; tile < end; tile++) {
        float *from[4];
        quarters(call->at[0], s[WINO_W], pixel, tile, from);
        float *to = (float *)call->at[1] + tile * pixel;
        EACH_LANE(pixel, at, gradient_vector(from, to, plane, at), gradient_number(from, to, plane, at))
    }
    (void)part;
}

/* B v B' gathered: an even row of the image is row 1 of its own tile and row 3 of the one before, an odd one row 2 of
 * its own and row 0 of the next; columns alike. `tile(q, down, across)` is plane q of a neighbour. */
#define MAP_BACK(type, tile, y)                                                                                        \
    for (int odd = 0; odd < 2; odd++) {                                                                                \
        type middle[4], left, right;                                                                                   \
        for (int q = 0; q < 4; q++)                                                                                    \
            middle[q] = odd ? tile(4 + q, 0, 0) + tile(8 + q, 0, 0) - tile(q, 0, 0) + tile(q, 1, 0)                    \
                            : tile(4 + q, 0, 0) - tile(8 + q, 0, 0) + tile(12 + q, 0, 0) - tile(12 + q, -1, 0);        \
        left = odd ? tile(7, 0, -1) + tile(11, 0, -1) - tile(3, 0, -1) + tile(3, 1, -1)                                \
                   : tile(7, 0, -1) - tile(11, 0, -1) + tile(15, 0, -1) - tile(15, -1, -1);                            \
        right = odd ? tile(4, 0, 1) + tile(8, 0, 1) - tile(0, 0, 1) + tile(0, 1, 1)                                    \
                    : tile(4, 0, 1) - tile(8, 0, 1) + tile(12, 0, 1) - tile(12, -1, 1);                                \
        (y)[2 * odd] = middle[1] - middle[2] + middle[3] - left;                                                       \
        (y)[2 * odd + 1] = middle[1] + middle[2] - middle[0] + right;                                                  \
    }

/* Where the planes of the nine tiles around one begin, or NULL. */
typedef struct {
    const float *at[3][3];
    int64_t plane;
} around;

static inline vec vector_of(const around *tiles, int place, int down, int across, int64_t at) {
    const float *from = tiles->at[down + 1][across + 1];
    return from == NULL ? zeros() : load(from + place * tiles->plane + at);
}

static inline float number_of(const around *tiles, int place, int down, int across, int64_t at) {
    const float *from = tiles->at[down + 1][across + 1];
    return from == NULL ? 0 : from[place * tiles->plane + at];
}

static inline void back_vector(const around *tiles, float *const *to, int64_t at) {
    vec y[4];
#define TILE_VECTOR(place, down, across) vector_of(tiles, place, down, across, at)
    MAP_BACK(vec, TILE_VECTOR, y)
    for (int place = 0; place < 4; place++)
        store(to[place] + at, y[place]);
}

static inline void back_number(const around *tiles, float *const *to, int64_t at) {
    float y[4];
#define TILE_NUMBER(place, down, across) number_of(tiles, place, down, across, at)
    MAP_BACK(float, TILE_NUMBER, y)
    for (int place = 0; place < 4; place++)
        to[place][at] = y[place];
}

/* Operands: planes, gradient of the image. */
static void run_wino_back(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes;
    int64_t high = s[WINO_H] / 2, wide = s[WINO_W] / 2, pixel = s[WINO_PIXEL];
    for (int64_t tile = first; tile < end; tile++) {
        around tiles = {.plane = s[WINO_PLANE]};
        for (int place = 0; place < 9; place++) {
            int64_t row = tile / wide + place / 3 - 1, column = tile % wide + place % 3 - 1;
            bool inside = row >= 0 && row < high && column >= 0 && column < wide;
            tiles.at[place / 3][place % 3] =
                inside ? (const float *)call->at[0] + (row * wide + column) * pixel : NULL;
        }
        float *to[4];
        quarters(call->at[1], s[WINO_W], pixel, tile, to);
        EACH_LANE(pixel, at, back_vector(&tiles, to, at), back_number(&tiles, to, at))
    }
    (void)part;
}

/* G w G' and its gradient, number by number. Sizes: elements of a matrix of the weight (by positions). Operands:
 * weight, transformed weight; or gradient of the transformed weight, gradient of the weight. */
static hedgerow_verdict check_wino_weight(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    *units = positive(&check, 0);
    needs_floats(&check, 0, times(&check, 9, *units));
    needs_floats(&check, 1, times(&check, 16, *units));
    return check.verdict;
}

/* Planes of a weight lie a power of two apart, in the same few lines of a cache; so some numbers of all planes are
 * made near at hand, and each plane's are then moved in one go. */
enum { NEAR_NUMBERS = 64 };

static void move_planes(float *restrict to, int64_t to_step, const float *restrict from, int64_t from_step,
                        int64_t planes, int64_t count) {
    for (int64_t plane = 0; plane < planes; plane++)
        memcpy(to + plane * to_step, from + plane * from_step, (size_t)count * sizeof *to);
}

static void run_wino_weight(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    _Alignas(64) float w[9][NEAR_NUMBERS] = {{0}}, u[16][NEAR_NUMBERS];
    int64_t n = call->record.sizes[0];
    for (int64_t start = first; start < end; start += NEAR_NUMBERS) {
        int64_t count = least(NEAR_NUMBERS, end - start);
        move_planes(w[0], NEAR_NUMBERS, (const float *)call->at[0] + start, n, 9, count);
        for (int64_t at = 0; at < NEAR_NUMBERS; at++) {
            float half[12];
            for (int column = 0; column < 3; column++) {
                float one = w[column][at], two = w[3 + column][at], three = w[6 + column][at];
                half[column] = one;
                half[3 + column] = 0.5F * (one + two + three);
                half[6 + column] = 0.5F * (one - two + three);
                half[9 + column] = three;
            }
            for (int row = 0; row < 4; row++) {
                float one = half[3 * row], two = half[3 * row + 1], three = half[3 * row + 2];
                u[4 * row][at] = one;
                u[4 * row + 1][at] = 0.5F * (one + two + three);
                u[4 * row + 2][at] = 0.5F * (one - two + three);
                u[4 * row + 3][at] = three;
            }
        }
        move_planes((float *)call->at[1] + start, n, u[0], NEAR_NUMBERS, 16, count);
    }
    (void)part;
}

/* Operands: transformed gradient, gradient of the weight. With a rate as the third, the second is the weight itself,
 * from which the gradient times the rate is taken. */
static hedgerow_verdict check_wino_weight_back(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    *units = positive(&check, 0);
    needs_floats(&check, 0, times(&check, 16, *units));
    needs_floats(&check, 1, times(&check, 9, *units));
    may_have_floats(&check, 2, 1);
    return check.verdict;
}

/* Write the gradient of some weights, or take it from them. */
static void put_window(const hedgerow_call *call, float (*w)[NEAR_NUMBERS], int64_t start, int64_t count) {
    float old[9][NEAR_NUMBERS], *to = (float *)call->at[1] + start;
    int64_t n = call->record.sizes[0];
    if (call->at[2] != NULL) {
        float rate = *(const float *)call->at[2];
        move_planes(old[0], NEAR_NUMBERS, to, n, 9, count);
        for (int place = 0; place < 9; place++)
            for (int64_t at = 0; at < count; at++)
                w[place][at] = old[place][at] - rate * w[place][at];
    }
    move_planes(to, n, w[0], NEAR_NUMBERS, 9, count);
}

static void run_wino_weight_back(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    _Alignas(64) float u[16][NEAR_NUMBERS] = {{0}}, w[9][NEAR_NUMBERS];
    int64_t n = call->record.sizes[0];
    for (int64_t start = first; start < end; start += NEAR_NUMBERS) {
        int64_t count = least(NEAR_NUMBERS, end - start);
        move_planes(u[0], NEAR_NUMBERS, (const float *)call->at[0] + start, n, 16, count);
        for (int64_t at = 0; at < NEAR_NUMBERS; at++) {
            float half[12];
            for (int column = 0; column < 4; column++) {
                float one = u[column][at], two = u[4 + column][at], three = u[8 + column][at], four = u[12 + column][at];
                half[column] = one + 0.5F * (two + three);
                half[4 + column] = 0.5F * (two - three);
                half[8 + column] = four + 0.5F * (two + three);
            }
            for (int row = 0; row < 3; row++) {
                float one = half[4 * row], two = half[4 * row + 1], three = half[4 * row + 2], four = half[4 * row + 3];
                w[3 * row][at] = one + 0.5F * (two + three);
                w[3 * row + 1][at] = 0.5F * (two - three);
                w[3 * row + 2][at] = four + 0.5F * (two + three);
            }
        }
        put_window(call, w, start, count);
    }
    (void)part;
}

/* As many products as there are planes. Sizes: m, n, k, how A and B are turned, products, floats from one to the next
 * of A, B and C. Operands: A, B, C. Cut by products. */
enum { MANY_M, MANY_N, MANY_K, MANY_TURN_A, MANY_TURN_B, MANY_COUNT, MANY_A, MANY_B, MANY_C };

static void needs_many(checker *check, int at, int64_t rows, int64_t columns, int64_t count, int64_t step) {
    int64_t elements = times(check, rows, columns);
    refuse_unless(check, step >= elements, HEDGEROW_WRONG_SIZES);
    needs_floats(check, at, times(check, count - 1, step) + elements);
}

static hedgerow_verdict check_products(const hedgerow_record *record, int64_t *units) {
    checker check = look_at(record);
    int64_t m = positive(&check, MANY_M), n = positive(&check, MANY_N), k = positive(&check, MANY_K);
    *units = positive(&check, MANY_COUNT);
    needs_many(&check, 0, m, k, *units, record->sizes[MANY_A]);
    needs_many(&check, 1, k, n, *units, record->sizes[MANY_B]);
    needs_many(&check, 2, m, n, *units, record->sizes[MANY_C]);
    return check.verdict;
}

static void run_products(const hedgerow_call *call, int64_t first, int64_t end, int part) {
    const int64_t *s = call->record.sizes;
    for (int64_t at = first; at < end; at++) {
        hedgerow_product p = {.turn_a = s[MANY_TURN_A], .turn_b = s[MANY_TURN_B], .m = s[MANY_M], .n = s[MANY_N],
                              .k = s[MANY_K], .a = (const float *)call->at[0] + at * s[MANY_A],
                              .b = (const float *)call->at[1] + at * s[MANY_B],
                              .c = (float *)call->at[2] + at * s[MANY_C], .ldc = s[MANY_N]};
        p.lda = p.turn_a ? p.m : p.k;
        p.ldb = p.turn_b ? p.k : p.n;
        multiply(&p);
    }
    (void)part;
}
