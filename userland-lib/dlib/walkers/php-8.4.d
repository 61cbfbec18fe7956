/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of PHP code in PHP 8.4 without thread support.
 *
 * Frames (zend_execute_data of Zend/zend_compile.h) are a list, innermost first. Functions of PHP's
 * own library have frames, too. One evaluator executes the frames up to one that was called from C.
 * The code of two functions of the runtime is compared, because it contains the offsets of the list
 * and of a file's name. Thus other layouts are not mistaken for this one.
 */

#pragma walker evaluator execute_ex
#pragma walker requires zend_get_executed_filename_ex 4 0x48000001e8828b48
#pragma walker requires zend_get_executed_filename_ex 10 0xc3000000a8828b48
#pragma walker address executor_globals
#pragma walker lines scope

inline uint64_t nth = __walk[0];
inline uint64_t executor_globals = __walk[1] + __walk[16];
inline uint64_t current_execute_data = 0x1e8;
inline uint64_t op_array_filename = 0xa8;

/* ZEND_USER_FUNCTION, and ZEND_CALL_TOP, the flag of a function that was called from C. */
inline int user_function = 2;
inline uint32_t call_top = 1 << 17;

this uint64_t frame;
this uint64_t code;
this uint64_t name;
this uint64_t class;
this uint64_t file;
this uint64_t opline;
this int type;
this int is_last;

dtrace:walker::
{
	if (nth == 0)
		this->frame = *(userland uint64_t *)(executor_globals + current_execute_data);
	this->is_last = 0;
	while (this->frame != 0 && !this->is_last) {
		this->code = *(userland uint64_t *)(this->frame + 24);
		this->file = 0;
		this->opline = 0;
		this->class = 0;
		this->name = 0;
		this->type = 0;
		if (this->code != 0) {
			this->type = *(userland uint8_t *)this->code;
			this->name = *(userland uint64_t *)(this->code + 8);
			this->class = *(userland uint64_t *)(this->code + 16);
			if (this->class != 0)
				this->class = *(userland uint64_t *)(this->class + 8);
			if (this->type == user_function) {
				this->file = *(userland uint64_t *)(this->code + op_array_filename);
				this->opline = *(userland uint64_t *)this->frame;
				this->is_last = (*(userland uint32_t *)(this->frame + 40) & call_top) != 0;
			}
			__frame(this->name ? this->name + 24 : 0, this->name ? *(userland uint64_t *)(this->name + 16) : 0,
			    this->file ? this->file + 24 : 0, this->file ? *(userland uint64_t *)(this->file + 16) : 0,
			    this->opline ? *(userland uint32_t *)(this->opline + 24) : 0,
			    this->class ? this->class + 24 : 0, this->class ? *(userland uint64_t *)(this->class + 16) : 0, 0);
		}
		this->frame = *(userland uint64_t *)(this->frame + 48);
	}
}
