/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of Ruby code in Ruby 3.3, except for code that its compiler YJIT has compiled.
 *
 * The frames of a fiber (rb_control_frame_t of vm_core.h) are an array, innermost first. One
 * evaluator executes the frames up to one that returns to C. The array also contains frames of C
 * functions and dummy frames: at the end, and while a file is compiled.
 *
 * The library exports no symbols for what the walker needs. The evaluator, rb_vm_exec(), is the
 * target of the jump at the end of rb_iseq_eval(). The thread-local variable ruby_current_ec is
 * accessed at the beginning of rb_profile_frames(). Two words contain the number of the library's
 * thread-local block and the offset in it; the thread's dynamic thread vector (DTV) contains the
 * address of the block with that number (System V ABI, AMD64, and glibc's dtv_t of 16 bytes).
 */

#pragma walker evaluator rb_iseq_eval+143
#pragma walker requires ruby_version 0 0x2e332e33 0xffffffff
#pragma walker requires rb_iseq_eval 17 0x00e95f415e415d41 0x00ffffffffffffff
#pragma walker requires rb_profile_frames 3 0x3d8d4866 0xffffffff
#pragma walker requires rb_profile_frames 4 0xe8486666 0xffffffff
#pragma walker operand rb_profile_frames 28
#pragma walker lines scope

inline uint64_t nth = __walk[0];
inline uint64_t thread = __walk[7];
inline uint64_t ruby_current_ec = __walk[1] + __walk[16];

/* Offset of a thread's DTV from the thread pointer, and size of an entry. */
inline uint64_t dtv = 8;
inline uint64_t dtv_size = 16;
/* Offsets in the execution context of a fiber (rb_execution_context_t). */
inline uint64_t ec_vm_stack = 0;
inline uint64_t ec_vm_stack_size = 8;
inline uint64_t ec_cfp = 16;
/* Size of a frame, offsets in it, and its flags, which are the first word of its environment. */
inline uint64_t cfp_size = 56;
inline uint64_t cfp_pc = 0;
inline uint64_t cfp_iseq = 16;
inline uint64_t cfp_ep = 32;
inline uint64_t is_finish = 0x20;
inline uint64_t is_cframe = 0x80;
inline uint64_t magic = 0x7fff0001;
inline uint64_t dummy = 0x79990001;
/* Offsets in code (rb_iseq_t) and in its body. */
inline uint64_t iseq_body = 16;
inline uint64_t body_encoded = 0x08;
inline uint64_t body_pathobj = 0x40;
inline uint64_t body_label = 0x50;
inline uint64_t body_insns = 0x70;
inline uint64_t body_insns_size = 0x80;
inline uint64_t body_insns_index = 0x88;
/*
 * Size of the description of an instruction (iseq_insn_info_entry), which begins with the line, 4
 * bytes.
 */
inline uint64_t insn_size = 12;
/*
 * The index (succ_index_table of iseq.c) gives the number of descriptions that begin at an
 * instruction or before it. For the first 54 instructions it has the number in 7 bits each, nine in
 * a word. For the others it has blocks of 512 instructions: the sum before the block, the sums
 * before each of its words except the first in 9 bits each, and one bit per instruction.
 */
inline uint64_t immediate = 54;
inline uint64_t index_blocks = 48;
inline uint64_t block_size = 80;
inline uint64_t block_sums = 8;
inline uint64_t block_bits = 16;
/*
 * The type bits of an object, and the flag of a string whose text is stored separately, or of an
 * array whose elements are stored in the object.
 */
inline uint64_t type = 0x1f;
inline uint64_t t_array = 7;
inline uint64_t user1 = 1 << 13;
inline uint64_t string_size = 16;
inline uint64_t string_bytes = 24;
inline uint64_t array_elements = 16;
inline uint64_t array_pointer = 32;

this uint64_t cfp;
this uint64_t end;
this uint64_t flags;
this uint64_t body;
this uint64_t pc;
this uint64_t n;
this uint64_t index;
this uint64_t bits;
this uint64_t rank;
this uint64_t line;
this uint64_t name;
this uint64_t path;
this int is_done;

dtrace:walker::
{
	if (nth == 0) {
		this->body = *(userland uint64_t *)(thread + dtv) + *(userland uint64_t *)ruby_current_ec * dtv_size;
		this->body = *(userland uint64_t *)(*(userland uint64_t *)this->body + *(userland uint64_t *)(ruby_current_ec + 8));
		this->cfp = *(userland uint64_t *)(this->body + ec_cfp);
		this->end = *(userland uint64_t *)(this->body + ec_vm_stack) + *(userland uint64_t *)(this->body + ec_vm_stack_size) * 8;
	}
	this->is_done = 0;
	while (this->cfp < this->end && !this->is_done) {
		this->flags = *(userland uint64_t *)*(userland uint64_t *)(this->cfp + cfp_ep);
		if ((this->flags & magic) != dummy && (this->flags & is_cframe) == 0) {
			this->body = *(userland uint64_t *)(*(userland uint64_t *)(this->cfp + cfp_iseq) + iseq_body);

			/*
			 * The program counter points behind the current instruction, except at the
			 * beginning.
			 */
			this->pc = *(userland uint64_t *)(this->cfp + cfp_pc);
			this->n = (this->pc - *(userland uint64_t *)(this->body + body_encoded)) / 8;
			this->n = this->n != 0 ? this->n - 1 : 0;
			this->index = *(userland uint64_t *)(this->body + body_insns_index);
			this->rank = 0;
			if (this->pc != 0 && this->index != 0 && this->n < immediate)
				this->rank = *(userland uint64_t *)(this->index + this->n / 9 * 8) >> this->n % 9 * 7 & 0x7f;
			else if (this->pc != 0 && this->index != 0) {
				this->n = this->n - immediate;
				this->index = this->index + index_blocks + this->n / 512 * block_size;
				this->n = this->n % 512;
				this->rank = *(userland uint32_t *)this->index;
				if (this->n >= 64)
					this->rank = this->rank + (*(userland uint64_t *)(this->index + block_sums) >> (this->n / 64 - 1) * 9 & 0x1ff);
				/* Count the bits of the word up to this instruction. */
				this->bits = *(userland uint64_t *)(this->index + block_bits + this->n / 64 * 8) << 63 - this->n % 64;
				this->bits = this->bits - (this->bits >> 1 & 0x5555555555555555);
				this->bits = (this->bits & 0x3333333333333333) + (this->bits >> 2 & 0x3333333333333333);
				this->bits = this->bits + (this->bits >> 4) & 0x0f0f0f0f0f0f0f0f;
				this->rank = this->rank + (this->bits * 0x0101010101010101 >> 56);
			}
			this->line = 0;
			if (this->rank != 0 && this->rank <= *(userland uint32_t *)(this->body + body_insns_size))
				this->line = *(userland uint32_t *)(*(userland uint64_t *)(this->body + body_insns) + (this->rank - 1) * insn_size);

			this->name = *(userland uint64_t *)(this->body + body_label);
			this->path = *(userland uint64_t *)(this->body + body_pathobj);
			/*
			 * The name of a file may be an array of the name and the real path. Use the
			 * first element.
			 */
			if ((*(userland uint64_t *)this->path & type) == t_array)
				this->path = (*(userland uint64_t *)this->path & user1) != 0 ?
				    *(userland uint64_t *)(this->path + array_elements) :
				    *(userland uint64_t *)*(userland uint64_t *)(this->path + array_pointer);
			__frame((*(userland uint64_t *)this->name & user1) != 0 ?
			    *(userland uint64_t *)(this->name + string_bytes) : this->name + string_bytes,
			    *(userland uint64_t *)(this->name + string_size),
			    (*(userland uint64_t *)this->path & user1) != 0 ?
			    *(userland uint64_t *)(this->path + string_bytes) : this->path + string_bytes,
			    *(userland uint64_t *)(this->path + string_size),
			    this->line, 0, 0, 0);
			this->is_done = (this->flags & is_finish) != 0;
		}
		this->cfp = this->cfp + cfp_size;
	}
}
