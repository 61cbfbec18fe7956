/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of Perl code in Perl 5.40 with thread support.
 *
 * An interpreter has a list of stacks (PERL_SI), innermost first. Each stack has an array of
 * contexts (PERL_CONTEXT of cop.h). Contexts of subroutines and of evaluated or required code are
 * functions here. Each of them has the COP of the statement in its caller.
 *
 * The contexts that belong to one evaluator depend on how the evaluator was started:
 *
 * - C has called a subroutine. Its context has no return address. (Neither has the context of a
 *   subroutine that is called last in a block of `sort`, in a pattern, or in a deferred block.)
 * - `sort` has a block. The block has a stack of its own, which begins with a null context.
 * - A block is deferred.
 * - Code called by C enters an `eval` while nothing catches its exceptions. Perl then starts an
 *   evaluator for the `eval` within C's evaluator. It continues after the end of the `eval`, up to
 *   the point where the code returns to C. It has a jump target (JMPENV), which lies between the
 *   stacks of the two evaluators, and whose predecessor says that it catches nothing. An `eval` of
 *   C has a jump target as well, but its context is below that of the code.
 *
 * `sort` and others keep a context from one call to the next. Between the calls the interpreter has
 * no current operation.
 */

#pragma walker evaluator Perl_runops_standard Perl_runops_debug
#pragma walker requires PL_version 0 0x0528 0xffff
#pragma walker requires PL_interp_size 0 0x0eb8 0xffff
#pragma walker requires Perl_caller_cx 0 0xe09f8b4cfa1e0ff3
#pragma walker requires Perl_caller_cx 9 0x44077448f74c3b48
#pragma walker requires Perl_lex_read_to 8 0x000000d0978b4800 0xffffffffffffff00
#pragma walker requires Perl_lex_read_to 9 0x01244283 0xffffffff
#pragma walker thread PL_current_context
#pragma walker lines scope

inline uint64_t nth = __walk[0];
inline uint64_t own_stack = __walk[2];
inline uint64_t next_stack = __walk[6];
inline uint64_t current_context = __walk[7] + __walk[16];

/* Offsets in the interpreter (intrpvar.h) and in a stack. */
inline uint64_t op = 0x08;
inline uint64_t curcop = 0xd0;
inline uint64_t curstackinfo = 0xe0;
inline uint64_t top_env = 0x308;
inline uint64_t si_cxstack = 0x08;
inline uint64_t si_prev = 0x10;
inline uint64_t si_cxix = 0x20;
inline uint64_t si_type = 0x2c;
inline int perlsi_sort = 3;

/* Size of a context, offsets in it, and types. Type and flags share a byte. */
inline uint64_t context_size = 104;
inline uint64_t oldcop = 0x10;
inline uint64_t retop = 0x30;
inline uint64_t sub_cv = 0x48;
inline uint64_t cur_top_env = 0x60;
inline int type_mask = 0x0f;
inline int cxt_null = 0;
inline int cxt_sub = 9;
inline int cxt_format = 10;
inline int cxt_eval = 11;
inline int cxt_defer = 13;
/* CXp_EVALBLOCK and CXp_TRY: blocks of `eval` and `try`, which are not functions. */
inline int eval_block = 0x40;
inline int no_code = 0xc0;
/*
 * CXp_SUB_RE and CXp_SUB_RE_FAKE: code in a pattern, and code that belongs to the surrounding
 * function, which already has a context.
 */
inline int in_pattern = 0x40;
inline int is_fake = 0x80;

/* Offsets in a JMPENV, whose first word is its predecessor, and in a COP. */
inline uint64_t je_mustcatch = 0xd4;
inline uint64_t cop_line = 0x24;
inline uint64_t cop_file = 0x30;

/*
 * Offsets in the body of a subroutine (cv.h): its package, its glob or own name, and the flags that
 * say which of them.
 */
inline uint64_t xcv_stash = 0x20;
inline uint64_t xcv_gv = 0x38;
inline uint64_t xcv_flags = 0x5c;
inline uint32_t cvf_named = 0x8000;
/* Offsets in the bodies of a glob and of a package. A package may have several names. */
inline uint64_t gv_namehek = 0x20;
inline uint64_t gv_stash = 0x28;
inline uint64_t stash_name = 0x20;
inline uint64_t stash_name_count = 0x3c;
/* Offsets in a name (HEK). */
inline uint64_t hek_len = 4;
inline uint64_t hek_key = 8;
/* Maximum size of a file's name, which ends with NUL. */
inline int file_max = 256;

this uint64_t stack;
this int at;
this uint64_t cop;
this uint64_t env;
this uint64_t context;
this uint64_t own_env;
this int type;
this uint64_t body;
this uint64_t name;
this uint64_t package;
this int begun_at;
this int n;
this int is_code;
this int is_block;
this int is_over;
this int is_done;
this int is_spent;

/* Whether the stack is that of a block of `sort`. */
inline int has_block = this->at >= 0 && *(userland int32_t *)(this->stack + si_type) == perlsi_sort &&
    (*(userland uint8_t *)*(userland uint64_t *)(this->stack + si_cxstack) & type_mask) == cxt_null;

dtrace:walker::
{
	if (nth == 0) {
		this->body = *(userland uint64_t *)current_context;
		this->cop = *(userland uint64_t *)(this->body + curcop);
		this->env = *(userland uint64_t *)(this->body + top_env);
		this->name = *(userland uint64_t *)(this->body + op);
		this->body = *(userland uint64_t *)(this->body + curstackinfo);
		this->at = *(userland int32_t *)(this->body + si_cxix);
		/* Assign this last, because the walker does nothing while it is 0. */
		this->stack = this->body;
		/* Skip a context that is kept without an evaluator. */
		if (this->name == 0 && this->at >= 0) {
			this->context = *(userland uint64_t *)(this->stack + si_cxstack) + this->at * context_size;
			this->type = *(userland uint8_t *)this->context & type_mask;
			if (this->type == cxt_sub && *(userland uint64_t *)(this->context + retop) == 0 ||
			    this->type == cxt_null && this->at == 0 && *(userland int32_t *)(this->stack + si_type) == perlsi_sort)
				this->at = this->at - 1;
		}
	}

	/* A stack is finished if it has no contexts left, or only an `eval` of C. */
	this->is_over = 1;
	while (this->is_over) {
		this->is_over = 0;
		if (this->stack != 0 && *(userland uint64_t *)(this->stack + si_prev) != 0) {
			if (this->at < 0)
				this->is_over = 1;
			else if (this->at == 0) {
				this->context = *(userland uint64_t *)(this->stack + si_cxstack);
				this->type = *(userland uint8_t *)this->context;
				this->is_over = (this->type & type_mask) == cxt_eval && (this->type & eval_block) != 0 &&
				    *(userland uint64_t *)(this->context + retop) == 0;
			}
			if (this->is_over) {
				this->stack = *(userland uint64_t *)(this->stack + si_prev);
				this->at = *(userland int32_t *)(this->stack + si_cxix);
			}
		}
	}

	this->is_block = this->stack != 0 && has_block;

	/* The evaluator within this one may have taken all contexts that C has called. */
	this->is_done = this->is_spent;
	this->is_spent = 0;

	while (this->env != 0 && this->env < own_stack)
		this->env = *(userland uint64_t *)this->env;
	this->own_env = 0;
	if (this->env != 0 && this->env < next_stack && next_stack != -1 && !this->is_done)
		if (*(userland uint8_t *)(*(userland uint64_t *)this->env + je_mustcatch) != 0)
			this->own_env = this->env;

	/*
	 * This evaluator was started for the outermost `eval` with its jump target, unless that
	 * `eval` has been left.
	 */
	this->begun_at = -1;
	this->n = this->own_env != 0 && this->stack != 0 ? this->at : -1;
	this->is_spent = this->own_env != 0;
	while (this->n >= 0) {
		this->context = *(userland uint64_t *)(this->stack + si_cxstack) + this->n * context_size;
		this->type = *(userland uint8_t *)this->context & type_mask;
		this->n = this->n - 1;
		if (this->type == cxt_eval && *(userland uint64_t *)(this->context + cur_top_env) == this->own_env) {
			this->begun_at = this->n + 1;
			this->is_spent = 0;
		}
		if (this->type == cxt_defer)
			this->n = -1;
		if ((this->type == cxt_sub || this->type == cxt_format) && !this->is_block &&
		    *(userland uint64_t *)(this->context + retop) == 0) {
			if (this->n >= 0) {
				this->context = this->context - context_size;
				this->type = *(userland uint8_t *)this->context;
				if ((this->type & type_mask) == cxt_eval && (this->type & eval_block) != 0 &&
				    *(userland uint64_t *)(this->context + retop) == 0) {
					this->begun_at = -1;
					this->is_spent = 0;
				}
			}
			this->n = -1;
		}
	}

	while (this->stack != 0 && !this->is_done) {
		if (this->at < 0) {
			this->is_done = this->is_block;
			this->is_block = 0;
			this->stack = *(userland uint64_t *)(this->stack + si_prev);
			if (this->stack != 0) {
				this->at = *(userland int32_t *)(this->stack + si_cxix);
				this->is_block = has_block;
			} else
				__frame(0, 0, *(userland uint64_t *)(this->cop + cop_file), file_max,
				    *(userland uint32_t *)(this->cop + cop_line), 0, 0, 0);
		} else {
			this->context = *(userland uint64_t *)(this->stack + si_cxstack) + this->at * context_size;
			this->type = *(userland uint8_t *)this->context;
			this->is_code = (this->type & type_mask) == cxt_eval && (this->type & no_code) == 0;
			this->is_done = this->at == this->begun_at || (this->type & type_mask) == cxt_defer;
			this->name = 0;
			this->package = 0;
			if ((this->type & type_mask) == cxt_sub || (this->type & type_mask) == cxt_format) {
				this->is_code = 1;
				this->body = *(userland uint64_t *)*(userland uint64_t *)(this->context + sub_cv);
				this->name = *(userland uint64_t *)(this->body + xcv_gv);
				if ((*(userland uint32_t *)(this->body + xcv_flags) & cvf_named) != 0)
					this->package = *(userland uint64_t *)(this->body + xcv_stash);
				else if (this->name != 0) {
					this->body = *(userland uint64_t *)this->name;
					this->name = *(userland uint64_t *)(this->body + gv_namehek);
					this->package = *(userland uint64_t *)(this->body + gv_stash);
				}
				if (this->package != 0) {
					this->body = *(userland uint64_t *)this->package;
					this->package = *(userland uint64_t *)(this->body + stash_name);
					if (*(userland int32_t *)(this->body + stash_name_count) != 0)
						this->package = *(userland uint64_t *)this->package;
				}
			}
			if (this->is_code) {
				if ((this->type & type_mask) == cxt_eval || (this->type & is_fake) == 0)
					__frame(this->name ? this->name + hek_key : 0,
					    this->name ? *(userland uint32_t *)(this->name + hek_len) : 0,
					    *(userland uint64_t *)(this->cop + cop_file), file_max,
					    *(userland uint32_t *)(this->cop + cop_line),
					    this->package ? this->package + hek_key : 0,
					    this->package ? *(userland uint32_t *)(this->package + hek_len) : 0, 0);
				this->cop = *(userland uint64_t *)(this->context + oldcop);
				if (*(userland uint64_t *)(this->context + retop) == 0 && !this->is_block) {
					this->is_done = 1;
					if (this->at > 0) {
						this->type = *(userland uint8_t *)(this->context - context_size);
						if ((this->type & type_mask) == cxt_sub && (this->type & in_pattern) != 0 ||
						    (this->type & type_mask) == cxt_defer)
							this->is_done = 0;
					}
				}
			}
			this->at = this->at - 1;
		}
	}
}
