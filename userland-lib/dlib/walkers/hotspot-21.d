/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of Java code in HotSpot of JDK 21.
 *
 * The library describes its layout (runtime/vmStructs.cpp). The offsets of fields are read from the
 * process, because they are filled in when the library is loaded. Facts that are not described
 * there are constants below.
 *
 * Each running Java method has a native frame in code that HotSpot has generated. Interpreter
 * frames have a frame pointer, and below it the method and the current bytecode. Compiled code
 * keeps no frame pointer. Code is in up to three heaps. A heap has one byte for each segment: the
 * distance, in segments, to the beginning of the block, or to a segment that has such a distance in
 * turn. A block has a header and a CodeBlob, which knows the size of its frames. The two highest
 * words of a frame are the caller's frame pointer and the return address.
 *
 * Compiled code has a sorted array of descriptions of code positions (PcDesc). Each refers to a
 * scope, that of the innermost inlined method at this position. A scope consists of the scope that
 * it was inlined into, the method, and the bytecode index, numbers of 1 to 5 digits below 192 to
 * each of which 1 was added (utilities/unsigned5.hpp).
 */

#pragma walker made told
#pragma walker says gHotSpotVMStructs Abstract_VM_Version _vm_major_version 21
#pragma walker static gHotSpotVMStructs CodeCache _heaps
#pragma walker static gHotSpotVMStructs AbstractInterpreter _code
#pragma walker sizes gHotSpotVMTypes HeapBlock PcDesc ConstMethod ConstantPool
#pragma walker offsets gHotSpotVMStructs GrowableArrayBase _len
#pragma walker offsets gHotSpotVMStructs GrowableArray<int> _data
#pragma walker offsets gHotSpotVMStructs StubQueue _stub_buffer _buffer_limit
#pragma walker offsets gHotSpotVMStructs CodeHeap _memory _segmap _log2_segment_size
#pragma walker offsets gHotSpotVMStructs VirtualSpace _low _high
#pragma walker offsets gHotSpotVMStructs CodeBlob _name _frame_size _frame_complete_offset _code_begin
#pragma walker offsets gHotSpotVMStructs CompiledMethod _method _scopes_data_begin
#pragma walker offsets gHotSpotVMStructs nmethod _metadata_offset _scopes_pcs_offset _dependencies_offset
#pragma walker offsets gHotSpotVMStructs PcDesc _pc_offset _scope_decode_offset
#pragma walker offsets gHotSpotVMStructs Method _constMethod
#pragma walker offsets gHotSpotVMStructs ConstMethod _constants _constMethod_size _flags._flags _code_size _name_index
#pragma walker offsets gHotSpotVMStructs ConstantPool _pool_holder _source_file_name_index
#pragma walker offsets gHotSpotVMStructs Klass _name
#pragma walker offsets gHotSpotVMStructs Symbol _length _body[0]
#pragma walker lines java

inline uint64_t nth = __walk[0];
inline uint64_t libjvm = __walk[1];
inline uint64_t sp = __walk[2];
inline uint64_t fp = __walk[3];
inline uint64_t pc = __walk[4];
inline uint64_t asked = __walk[8];
inline uint64_t interrupted = 2;

inline uint64_t code_heaps = libjvm + __walk[16];
inline uint64_t interpreter_code = libjvm + __walk[17];
inline uint64_t block_head = __walk[18];
inline uint64_t desc_size = __walk[19];
inline uint64_t const_method_end = __walk[20];
inline uint64_t pool_end = __walk[21];

/*
 * Offsets in the interpreter's frames (cpu/x86/frame_x86.hpp): the caller's stack pointer, the
 * method, and the current bytecode.
 */
inline uint64_t sender_sp = -8;
inline uint64_t frame_method = -24;
inline uint64_t frame_bytecode = -64;
/*
 * Maximum size by which an interpreted method extends its caller's stack, bytes: it has at most
 * 65,535 variables.
 */
inline uint64_t longer_max = 0x80000;
/*
 * The first 8 bytes of the names of compiled methods and of wrappers of native methods: `nmethod`,
 * `native n`.
 */
inline uint64_t name_compiled = 0x00646f6874656d6e;
inline uint64_t name_native = 0x6e2065766974616e;
/* The same of stubs that look up a method (`vtable chunks`), which have no frame. */
inline uint64_t name_vtable = 0x6320656c62617476;
/* ConstMethodFlags::_misc_has_linenumber_table. */
inline uint32_t has_lines = 1;
/* A digit below this one is the last of a number in a scope. */
inline int last_digit = 191;
/* Maximum number of scopes at one position. */
inline int scopes_max = 24;

/* Offsets of fields, loaded once per stack. */
this uint64_t array_len;
this uint64_t array_data;
this uint64_t queue_buffer;
this uint64_t queue_limit;
this uint64_t heap_memory;
this uint64_t heap_segmap;
this uint64_t heap_segment;
this uint64_t space_low;
this uint64_t space_high;
this uint64_t blob_name;
this uint64_t blob_frame;
this uint64_t blob_complete;
this uint64_t blob_code;
this uint64_t compiled_method;
this uint64_t compiled_scopes;
this uint64_t compiled_metadata;
this uint64_t compiled_pcs;
this uint64_t compiled_pcs_end;
this uint64_t desc_pc;
this uint64_t desc_scope;
this uint64_t method_const;
this uint64_t const_pool;
this uint64_t const_size;
this uint64_t const_flags;
this uint64_t const_code_size;
this uint64_t const_name;
this uint64_t pool_holder;
this uint64_t pool_source;
this uint64_t klass_name;
this uint64_t symbol_length;
this uint64_t symbol_body;

this uint64_t heaps;
this uint64_t low0;
this uint64_t high0;
this uint64_t low1;
this uint64_t high1;
this uint64_t low2;
this uint64_t high2;
this uint64_t interpreter;
this uint64_t interpreter_end;
this uint64_t heap;
this uint64_t low;
this uint64_t segment;
this uint64_t segments;
this uint64_t log2;
this uint64_t blob;
this uint64_t name;
this uint64_t begin;
this uint64_t size;
this uint64_t caller;
this uint64_t code;
this int is_interpreted;
this int n;
this uint64_t method;
this uint64_t body;
this uint64_t pool;
this uint64_t file;
this uint64_t class;
this uint64_t bytecode;
this uint64_t bytes;
this uint64_t room;
this uint64_t position;
this int place;
this uint64_t descs;
this uint64_t count;
this uint64_t at;
this uint64_t scope;
this uint64_t next;
this uint64_t number;
this int a;
this int b;
this int c;

dtrace:walker::
{
	/* The addresses of the heaps and of the interpreter do not change. */
	if (this->heaps == 0) {
		this->array_len = *(userland uint64_t *)(libjvm + __walk[22]);
		this->array_data = *(userland uint64_t *)(libjvm + __walk[23]);
		this->queue_buffer = *(userland uint64_t *)(libjvm + __walk[24]);
		this->queue_limit = *(userland uint64_t *)(libjvm + __walk[25]);
		this->heap_memory = *(userland uint64_t *)(libjvm + __walk[26]);
		this->heap_segmap = *(userland uint64_t *)(libjvm + __walk[27]);
		this->heap_segment = *(userland uint64_t *)(libjvm + __walk[28]);
		this->space_low = *(userland uint64_t *)(libjvm + __walk[29]);
		this->space_high = *(userland uint64_t *)(libjvm + __walk[30]);
		this->blob_name = *(userland uint64_t *)(libjvm + __walk[31]);
		this->blob_frame = *(userland uint64_t *)(libjvm + __walk[32]);
		this->blob_complete = *(userland uint64_t *)(libjvm + __walk[33]);
		this->blob_code = *(userland uint64_t *)(libjvm + __walk[34]);
		this->compiled_method = *(userland uint64_t *)(libjvm + __walk[35]);
		this->compiled_scopes = *(userland uint64_t *)(libjvm + __walk[36]);
		this->compiled_metadata = *(userland uint64_t *)(libjvm + __walk[37]);
		this->compiled_pcs = *(userland uint64_t *)(libjvm + __walk[38]);
		this->compiled_pcs_end = *(userland uint64_t *)(libjvm + __walk[39]);
		this->desc_pc = *(userland uint64_t *)(libjvm + __walk[40]);
		this->desc_scope = *(userland uint64_t *)(libjvm + __walk[41]);
		this->method_const = *(userland uint64_t *)(libjvm + __walk[42]);
		this->const_pool = *(userland uint64_t *)(libjvm + __walk[43]);
		this->const_size = *(userland uint64_t *)(libjvm + __walk[44]);
		this->const_flags = *(userland uint64_t *)(libjvm + __walk[45]);
		this->const_code_size = *(userland uint64_t *)(libjvm + __walk[46]);
		this->const_name = *(userland uint64_t *)(libjvm + __walk[47]);
		this->pool_holder = *(userland uint64_t *)(libjvm + __walk[48]);
		this->pool_source = *(userland uint64_t *)(libjvm + __walk[49]);
		this->klass_name = *(userland uint64_t *)(libjvm + __walk[50]);
		this->symbol_length = *(userland uint64_t *)(libjvm + __walk[51]);
		this->symbol_body = *(userland uint64_t *)(libjvm + __walk[52]);
		this->heaps = *(userland uint64_t *)code_heaps;
		this->count = *(userland uint32_t *)(this->heaps + this->array_len);
		this->at = *(userland uint64_t *)(this->heaps + this->array_data);
		if (this->count > 0) {
			this->heap = *(userland uint64_t *)this->at + this->heap_memory;
			this->low0 = *(userland uint64_t *)(this->heap + this->space_low);
			this->high0 = *(userland uint64_t *)(this->heap + this->space_high);
		}
		if (this->count > 1) {
			this->heap = *(userland uint64_t *)(this->at + 8) + this->heap_memory;
			this->low1 = *(userland uint64_t *)(this->heap + this->space_low);
			this->high1 = *(userland uint64_t *)(this->heap + this->space_high);
		}
		if (this->count > 2) {
			this->heap = *(userland uint64_t *)(this->at + 16) + this->heap_memory;
			this->low2 = *(userland uint64_t *)(this->heap + this->space_low);
			this->high2 = *(userland uint64_t *)(this->heap + this->space_high);
		}
		this->at = *(userland uint64_t *)interpreter_code;
		this->interpreter = *(userland uint64_t *)(this->at + this->queue_buffer);
		this->interpreter_end = this->interpreter + *(userland uint32_t *)(this->at + this->queue_limit);
	}

	/* Find the block of the code if it is not in the interpreter. */
	this->is_interpreted = pc >= this->interpreter && pc < this->interpreter_end;
	this->blob = 0;
	this->name = 0;
	this->low = 0;
	this->n = 0;
	if (pc >= this->low0 && pc < this->high0)
		this->low = this->low0;
	else if (pc >= this->low1 && pc < this->high1) {
		this->low = this->low1;
		this->n = 1;
	} else if (pc >= this->low2 && pc < this->high2) {
		this->low = this->low2;
		this->n = 2;
	}
	if (this->low != 0 && !this->is_interpreted) {
		this->heap = *(userland uint64_t *)(*(userland uint64_t *)(this->heaps + this->array_data) + this->n * 8);
		this->log2 = *(userland uint32_t *)(this->heap + this->heap_segment);
		this->segments = *(userland uint64_t *)(this->heap + this->heap_segmap + this->space_low);
		this->segment = pc - this->low >> this->log2;
		/*
		 * A step covers at most 254 segments. Most blocks need at most four steps, which
		 * are taken without a loop.
		 */
		this->size = *(userland uint8_t *)(this->segments + this->segment);
		this->segment = this->segment - this->size;
		this->size = *(userland uint8_t *)(this->segments + this->segment);
		this->segment = this->segment - this->size;
		this->size = *(userland uint8_t *)(this->segments + this->segment);
		this->segment = this->segment - this->size;
		this->size = *(userland uint8_t *)(this->segments + this->segment);
		this->segment = this->segment - this->size;
		while (this->size != 0) {
			this->size = *(userland uint8_t *)(this->segments + this->segment);
			this->segment = this->segment - this->size;
		}
		this->blob = this->low + (this->segment << this->log2) + block_head;
		this->name = *(userland uint64_t *)*(userland uint64_t *)(this->blob + this->blob_name);
		this->begin = *(userland uint64_t *)(this->blob + this->blob_code);
	}

	if (asked != 0) {
		if (this->is_interpreted && fp != 0) {
			this->caller = *(userland uint64_t *)(fp + sender_sp);
			if (this->caller - fp < 16 || this->caller - fp > longer_max)
				this->caller = fp + 16;
			__caller(*(userland uint64_t *)(fp + 8), this->caller, *(userland uint64_t *)fp);
		}
		this->size = this->blob != 0 ? *(userland int32_t *)(this->blob + this->blob_frame) * 8 : 0;
		if (this->size != 0 && this->size < longer_max) {
			/*
			 * While the frame is incomplete, the return address is the lowest word, or
			 * the word above the caller's frame pointer.
			 */
			this->n = -1;
			if (asked == interrupted) {
				this->code = *(userland uint32_t *)pc;
				/*
				 * Prologue: `push %rbp` and `sub`, or `sub` and `mov %rbp`. After
				 * it, `cmpl` and a jump may let the caller wait.
				 */
				if (pc < this->begin + *(userland uint32_t *)(this->blob + this->blob_complete) &&
				    *(userland int32_t *)(this->blob + this->blob_complete) > 0) {
					if ((this->code & 0xffffff) != 0x7f8141 && (*(userland uint32_t *)(pc - 8) & 0xffffff) != 0x7f8141 &&
					    (this->code & 0xffffff) != 0x6c8948 && (this->code & 0xffffff) != 0xac8948)
						this->n = *(userland uint8_t *)(pc - 1) == 0x55 ? 8 : 0;
				}
				/*
				 * Epilogue: `pop %rbp` and `ret`. A `cmp` of the stack pointer with
				 * a value of the thread and `ja` may precede `ret`.
				 */
				else if ((this->code & 0xff) == 0x5d)
					this->n = 8;
				else if ((this->code & 0xff) == 0xc3 || (this->code & 0xffffff) == 0xa73b49 ||
				    (this->code & 0xffffff) == 0x673b49)
					this->n = 0;
				else if ((this->code & 0xffff) == 0x870f &&
				    ((*(userland uint32_t *)(pc - 7) & 0xffffff) == 0xa73b49 || (*(userland uint32_t *)(pc - 4) & 0xffffff) == 0x673b49))
					this->n = 0;
			}
			if (this->n < 0)
				__caller(*(userland uint64_t *)(sp + this->size - 8), sp + this->size, *(userland uint64_t *)(sp + this->size - 16));
			else
				__caller(*(userland uint64_t *)(sp + this->n), sp + this->n + 8, this->n != 0 ? *(userland uint64_t *)sp : fp);
		} else if (asked == interrupted) {
			if (this->name == name_vtable)
				__caller(*(userland uint64_t *)sp, sp + 8, fp);
		} else if (this->blob != 0 && fp > sp && *(userland int64_t *)(fp + 8) == -1)
			/*
			 * The frame of the stub in which an entered method waits has an extra word
			 * (method_entry_barrier).
			 */
			__caller(*(userland uint64_t *)(fp + 16), fp + 24, *(userland uint64_t *)fp);
	} else {
		/* The method, and the methods of the scopes that it was inlined into. */
		this->method = 0;
		this->position = 0;
		this->scope = 0;
		this->next = 0;
		this->bytecode = 0;
		if (this->is_interpreted && fp != 0) {
			this->method = *(userland uint64_t *)(fp + frame_method);
			this->bytecode = *(userland uint64_t *)(fp + frame_bytecode);
		}
		if (this->name == name_native || this->name == name_compiled)
			this->method = *(userland uint64_t *)(this->blob + this->compiled_method);
		if (this->name == name_compiled) {
			this->descs = this->blob + *(userland uint32_t *)(this->blob + this->compiled_pcs) + this->desc_pc;
			this->count = (*(userland uint32_t *)(this->blob + this->compiled_pcs_end) - *(userland uint32_t *)(this->blob + this->compiled_pcs)) / desc_size;
			this->place = pc - this->begin;
			/*
			 * Binary search for the first description that is not of an earlier
			 * position. That of a call is of its return address.
			 */
			this->at = 0;
			this->at = this->at + 4096 <= this->count && *(userland int32_t *)(this->descs + (this->at + 4095) * desc_size) < this->place ? this->at + 4096 : this->at;
			this->at = this->at + 2048 <= this->count && *(userland int32_t *)(this->descs + (this->at + 2047) * desc_size) < this->place ? this->at + 2048 : this->at;
			this->at = this->at + 1024 <= this->count && *(userland int32_t *)(this->descs + (this->at + 1023) * desc_size) < this->place ? this->at + 1024 : this->at;
			this->at = this->at + 512 <= this->count && *(userland int32_t *)(this->descs + (this->at + 511) * desc_size) < this->place ? this->at + 512 : this->at;
			this->at = this->at + 256 <= this->count && *(userland int32_t *)(this->descs + (this->at + 255) * desc_size) < this->place ? this->at + 256 : this->at;
			this->at = this->at + 128 <= this->count && *(userland int32_t *)(this->descs + (this->at + 127) * desc_size) < this->place ? this->at + 128 : this->at;
			this->at = this->at + 64 <= this->count && *(userland int32_t *)(this->descs + (this->at + 63) * desc_size) < this->place ? this->at + 64 : this->at;
			this->at = this->at + 32 <= this->count && *(userland int32_t *)(this->descs + (this->at + 31) * desc_size) < this->place ? this->at + 32 : this->at;
			this->at = this->at + 16 <= this->count && *(userland int32_t *)(this->descs + (this->at + 15) * desc_size) < this->place ? this->at + 16 : this->at;
			this->at = this->at + 8 <= this->count && *(userland int32_t *)(this->descs + (this->at + 7) * desc_size) < this->place ? this->at + 8 : this->at;
			this->at = this->at + 4 <= this->count && *(userland int32_t *)(this->descs + (this->at + 3) * desc_size) < this->place ? this->at + 4 : this->at;
			this->at = this->at + 2 <= this->count && *(userland int32_t *)(this->descs + (this->at + 1) * desc_size) < this->place ? this->at + 2 : this->at;
			this->at = this->at < this->count && *(userland int32_t *)(this->descs + this->at * desc_size) < this->place ? this->at + 1 : this->at;
			if (this->at < this->count)
				this->next = *(userland uint32_t *)(this->descs - this->desc_pc + this->at * desc_size + this->desc_scope);
			this->scope = *(userland uint64_t *)(this->blob + this->compiled_scopes);
		}
		this->n = 0;
		while (this->method != 0) {
			if (this->next != 0) {
				/* Read the scope that this one was inlined into. */
				this->at = this->scope + this->next;
				this->a = *(userland uint8_t *)this->at - 1;
				this->b = this->a < last_digit ? 0 : *(userland uint8_t *)(this->at + 1) - 1;
				this->c = this->b < last_digit ? 0 : *(userland uint8_t *)(this->at + 2) - 1;
				this->next = this->a + (this->b << 6) + (this->c << 12);
				this->at = this->at + (this->a < last_digit ? 1 : this->b < last_digit ? 2 : 3);
				/* Read the number of the method in the code's metadata. */
				this->a = *(userland uint8_t *)this->at - 1;
				this->b = this->a < last_digit ? 0 : *(userland uint8_t *)(this->at + 1) - 1;
				this->c = this->b < last_digit ? 0 : *(userland uint8_t *)(this->at + 2) - 1;
				this->number = this->a + (this->b << 6) + (this->c << 12);
				this->at = this->at + (this->a < last_digit ? 1 : this->b < last_digit ? 2 : 3);
				/*
				 * Read the bytecode index plus 1; a method that is being entered
				 * has none.
				 */
				this->a = *(userland uint8_t *)this->at - 1;
				this->b = this->a < last_digit ? 0 : *(userland uint8_t *)(this->at + 1) - 1;
				this->c = this->b < last_digit ? 0 : *(userland uint8_t *)(this->at + 2) - 1;
				this->position = this->a + (this->b << 6) + (this->c << 12);
				this->position = this->position == 0 ? 1 : this->position;
				if (this->number != 0)
					this->method = *(userland uint64_t *)(this->blob + *(userland uint32_t *)(this->blob + this->compiled_metadata) + this->number * 8 - 8);
			}
			this->body = *(userland uint64_t *)(this->method + this->method_const);
			this->pool = *(userland uint64_t *)(this->body + this->const_pool);
			this->name = *(userland uint64_t *)(this->pool + pool_end + *(userland uint16_t *)(this->body + this->const_name) * 8);
			this->number = *(userland uint16_t *)(this->pool + this->pool_source);
			this->file = this->number != 0 ? *(userland uint64_t *)(this->pool + pool_end + this->number * 8) : 0;
			this->class = *(userland uint64_t *)(*(userland uint64_t *)(this->pool + this->pool_holder) + this->klass_name);
			/*
			 * The line table follows the bytecode, which follows the ConstMethod. The
			 * size of the table is not known, so this may include data that follows it.
			 */
			this->size = *(userland uint16_t *)(this->body + this->const_code_size);
			this->bytes = this->body + const_method_end + this->size;
			this->room = *(userland uint32_t *)(this->body + this->const_size) * 8 - const_method_end - this->size;
			this->room = this->room < 2 * this->size + 16 ? this->room : 2 * this->size + 16;
			if ((*(userland uint32_t *)(this->body + this->const_flags) & has_lines) == 0)
				this->room = 0;
			if (this->bytecode != 0 && this->bytecode - this->body - const_method_end < this->size)
				this->position = this->bytecode - this->body - const_method_end + 1;
			__scope(this->class + this->symbol_body, *(userland uint16_t *)(this->class + this->symbol_length));
			__frame(this->name + this->symbol_body, *(userland uint16_t *)(this->name + this->symbol_length),
			    this->file ? this->file + this->symbol_body : 0, this->file ? *(userland uint16_t *)(this->file + this->symbol_length) : 0,
			    this->position, this->bytes, this->room, 0);
			this->n = this->n + 1;
			if (this->next == 0 || this->n >= scopes_max)
				this->method = 0;
		}
	}
}
