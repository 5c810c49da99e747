/* Our own matrix product: panels of B are packed sixteen columns wide, and six rows of A at a time go over them.
 *
 * A is read where it lies, a number at a time, so that it needs no packing whichever way it is turned. The panel is a
 * thread's own, 32 KiB on its stack.
 */
#include "products.h"
#include "vector.h"

enum { TILE_ROWS = 6, TILE_COLUMNS = 2 * LANES, PANEL_DEPTH = 512, TILE_TERMS = 128 };

typedef struct {
    const float *at;
    int64_t row, depth; /* from one row, and from one step of the sum, to the next */
} left_side;

static void pack_panel(const hedgerow_product *p, int64_t first_column, int64_t columns, int64_t first, int64_t depth,
                       float *panel) {
    if (columns < TILE_COLUMNS)
        memset(panel, 0, (size_t)(depth * TILE_COLUMNS) * sizeof *panel);
    if (!p->turn_b) {
        for (int64_t step = 0; step < depth; step++)
            memcpy(panel + step * TILE_COLUMNS, p->b + (first + step) * p->ldb + first_column,
                   (size_t)columns * sizeof *panel);
        return;
    }
    turn_matrix(p->b + first_column * p->ldb + first, p->ldb, columns, depth, panel, TILE_COLUMNS);
}

/* Set or add the product of some rows of A and a panel, `rows` of them, known when this is compiled. Every so many terms
 * sums begin anew, because each addition to a long one is rounded. */
#define TILE(rows)                                                                                                     \
    static void tile_of_##rows(left_side a, const float *panel, int64_t panel_step, int64_t depth, int64_t terms,      \
                               float *c, int64_t ldc, int64_t columns, bool add) {                                     \
        for (int64_t step = 0, end; step < depth; add = true) {                                                        \
            vec low[rows], high[rows];                                                                                 \
            for (int row = 0; row < (rows); row++)                                                                     \
                low[row] = high[row] = zeros();                                                                        \
            for (end = least(depth, step + terms); step < end; step++) {                                               \
                vec left = load(panel + step * panel_step), right = load(panel + step * panel_step + LANES);           \
                for (int row = 0; row < (rows); row++) {                                                               \
                    vec factor = spread(a.at[row * a.row + step * a.depth]);                                           \
                    low[row] += factor * left;                                                                         \
                    high[row] += factor * right;                                                                       \
                }                                                                                                      \
            }                                                                                                          \
            for (int row = 0; row < (rows); row++)                                                                     \
                put_row(c + row * ldc, low[row], high[row], columns, add);                                             \
        }                                                                                                              \
    }

static inline void put_row(float *c, vec low, vec high, int64_t columns, bool add) {
    if (columns == TILE_COLUMNS) {
        store(c, add ? load(c) + low : low);
        store(c + LANES, add ? load(c + LANES) + high : high);
        return;
    }
    for (int64_t column = 0; column < columns; column++) {
        float value = column < LANES ? low[column] : high[column - LANES];
        c[column] = add ? c[column] + value : value;
    }
}

TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)

typedef void (*tile_function)(left_side, const float *, int64_t, int64_t, int64_t, float *, int64_t, int64_t, bool);
static const tile_function TILES[TILE_ROWS + 1] = {NULL,      tile_of_1, tile_of_2, tile_of_3,
                                                   tile_of_4, tile_of_5, tile_of_6};

/* How many of the rows left go into the next tile: tiles of about the same size, because a small one is slow. */
static inline int64_t tile_rows(int64_t left) {
    int64_t tiles = (left + TILE_ROWS - 1) / TILE_ROWS;
    return tiles <= 1 ? left : (left + tiles - 1) / tiles;
}

/* Terms of a sum of `depth` of them at a time: about the same number each. */
static inline int64_t terms_of(const hedgerow_product *p, int64_t depth) {
    int64_t highest = p->terms > 0 ? p->terms : TILE_TERMS, parts = (depth + highest - 1) / highest;
    return (depth + parts - 1) / parts;
}

static void own_product(const hedgerow_product *p) {
    _Alignas(64) float panel[PANEL_DEPTH * TILE_COLUMNS];
    int64_t row_step = p->turn_a ? 1 : p->lda, depth_step = p->turn_a ? p->lda : 1;
    for (int64_t first = 0; first < p->k; first += PANEL_DEPTH) {
        int64_t depth = least(PANEL_DEPTH, p->k - first), terms = terms_of(p, depth);
        bool add = first > 0 || p->beta != 0 || p->taken != 0;
        for (int64_t column = 0; column < p->n; column += TILE_COLUMNS) {
            int64_t columns = least(TILE_COLUMNS, p->n - column);
            pack_panel(p, column, columns, first, depth, panel);
            if (p->taken != 0)
                for (int64_t at = 0; at < depth * TILE_COLUMNS; at++)
                    panel[at] *= -p->taken;
            for (int64_t row = 0, rows; row < p->m; row += rows) {
                rows = tile_rows(p->m - row);
                left_side a = {p->a + row * row_step + first * depth_step, row_step, depth_step};
                TILES[rows](a, panel, TILE_COLUMNS, depth, terms, p->c + row * p->ldc + column, p->ldc, columns, add);
            }
        }
    }
}

static void multiply(const hedgerow_product *product) {
    if (product->m > 0 && product->n > 0 && !hedgerow_blas_product(product))
        own_product(product);
}

/* The same where B lies near and is read in place, sixteen columns at a time; only its last columns are packed. */
static void near_product(const hedgerow_product *p) {
    int64_t whole = p->n / TILE_COLUMNS * TILE_COLUMNS;
    int64_t row_step = p->turn_a ? 1 : p->lda, depth_step = p->turn_a ? p->lda : 1, terms = terms_of(p, p->k);
    for (int64_t column = 0; column < whole; column += TILE_COLUMNS)
        for (int64_t row = 0, rows; row < p->m; row += rows) {
            rows = tile_rows(p->m - row);
            left_side a = {p->a + row * row_step, row_step, depth_step};
            TILES[rows](a, p->b + column, p->ldb, p->k, terms, p->c + row * p->ldc + column, p->ldc, TILE_COLUMNS,
                        p->beta != 0);
        }
    if (whole < p->n) {
        hedgerow_product rest = *p;
        rest.b += whole;
        rest.c += whole;
        rest.n -= whole;
        own_product(&rest);
    }
}
