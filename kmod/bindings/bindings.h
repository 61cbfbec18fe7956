/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* What bindgen reads. */
#include "helpers.h"
#include "file.h"
#include "loads.h"
#include "paths.h"
#include "providers.h"
#include "places.h"
#include "returns.h"
