/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* What bindgen reads. */
#include "detours.h"
#include "exports.h"
#include "faults.h"
#include "helper.h"
#include "helpers.h"
#include "instruction.h"
#include "file.h"
#include "loads.h"
#include "mappings.h"
#include "net.h"
#include "paths.h"
#include "pause.h"
#include "perf.h"
#include "places.h"
#include "processes.h"
#include "providers.h"
#include "remote.h"
#include "returns.h"
#include "rights.h"
#include "stacks.h"
