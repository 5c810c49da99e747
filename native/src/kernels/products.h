/* Matrix products of the kernels. */
#ifndef HEDGEROW_PRODUCTS_H
#define HEDGEROW_PRODUCTS_H

#include "../kernel.h"

static void multiply(const hedgerow_product *product);

#endif
