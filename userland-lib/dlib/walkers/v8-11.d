/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of JavaScript code in V8 11.3 (node 20).
 *
 * The library exports offsets and types for post-mortem debuggers
 * (tools/gen-postmortem-metadata.py), so that little here depends on the build. Each running
 * function has a native frame with a frame pointer: in the interpreter, which is a part of the blob
 * of builtins, or in compiled code. Below the frame pointer are the function's context and the
 * function. Other frames of the blob have a small integer instead of the context. Functions that
 * the optimizing compiler has inlined have no frame.
 *
 * The lowest bit of a pointer to a heap object is set. The value of a small integer is in the upper
 * 32 bits.
 */

#pragma walker blob _ZN2v88internal23DefaultEmbeddedBlobCodeEv+3 _ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv+3
#pragma walker made code
#pragma walker requires v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE 0 0x105 0xffffffff
#pragma walker requires v8dbg_SmiShiftSize 0 31 0xffffffff
#pragma walker numbers v8dbg_off_fp_context_or_frame_type v8dbg_off_fp_function
#pragma walker numbers v8dbg_off_fp_bytecode_array v8dbg_off_fp_bytecode_offset
#pragma walker numbers v8dbg_class_Map__instance_type__uint16_t v8dbg_class_JSFunction__shared__SharedFunctionInfo
#pragma walker numbers v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE v8dbg_class_SharedFunctionInfo__function_data__Object
#pragma walker numbers v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object
#pragma walker numbers v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject
#pragma walker numbers v8dbg_type_Script__SCRIPT_TYPE v8dbg_class_Script__name__Object v8dbg_class_Script__source__Object
#pragma walker numbers v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE v8dbg_class_BytecodeArray__data__uintptr_t
#pragma walker numbers v8dbg_type_ByteArray__BYTE_ARRAY_TYPE v8dbg_class_FixedArrayBase__length__SMI v8dbg_class_FixedArray__data__uintptr_t
#pragma walker numbers v8dbg_class_String__length__int32_t v8dbg_class_SeqOneByteString__chars__char v8dbg_class_ThinString__actual__String
#pragma walker numbers v8dbg_class_ConsString__first__String v8dbg_class_ConsString__second__String
#pragma walker numbers v8dbg_FirstNonstringType v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE
#pragma walker numbers v8dbg_OneByteStringTag v8dbg_StringRepresentationMask v8dbg_ConsStringTag v8dbg_ThinStringTag
#pragma walker numbers v8dbg_type_Code__CODE_TYPE v8dbg_class_Code__bytecode_or_interpreter_data__HeapObject
#pragma walker lines v8

inline uint64_t fp = __walk[3];
inline uint64_t fp_context = __walk[16];
inline uint64_t fp_function = __walk[17];
inline uint64_t fp_bytecode = __walk[18];
inline uint64_t fp_bytecode_offset = __walk[19];
inline uint64_t map_type = __walk[20];
inline uint64_t function_shared = __walk[21];
inline uint64_t type_shared = __walk[22];
inline uint64_t shared_data = __walk[23];
inline uint64_t shared_name = __walk[24];
inline uint64_t shared_script = __walk[25];
inline uint64_t type_script = __walk[26];
inline uint64_t script_name = __walk[27];
inline uint64_t script_source = __walk[28];
inline uint64_t type_bytecode = __walk[29];
inline uint64_t bytecode_first = __walk[30];
inline uint64_t type_bytes = __walk[31];
inline uint64_t bytes_length = __walk[32];
inline uint64_t bytes_data = __walk[33];
inline uint64_t string_length = __walk[34];
inline uint64_t string_chars = __walk[35];
inline uint64_t thin_actual = __walk[36];
inline uint64_t cons_first = __walk[37];
inline uint64_t cons_second = __walk[38];
inline uint64_t type_no_string = __walk[39];
inline uint64_t type_scope = __walk[40];
inline uint64_t one_byte = __walk[41];
inline uint64_t representation = __walk[42];
inline uint64_t is_cons = __walk[43];
inline uint64_t is_thin = __walk[44];
inline uint64_t type_code = __walk[45];
inline uint64_t code_bytecode = __walk[46];

/* BytecodeArray::source_position_table of objects/bytecode-array.tq. */
inline uint64_t bytecode_positions = 0x20;
/*
 * ScopeInfo of objects/scope-info.tq: the offsets of the flags, of the number of locals, and of the
 * variable part.
 */
inline uint64_t scope_flags = 0x8;
inline uint64_t scope_locals = 0x18;
inline uint64_t scope_rest = 0x20;
/*
 * With this number of locals or more, their names are in a separate table, of which the scope has
 * only the address.
 */
inline uint64_t locals_max = 75;
/*
 * Flags of a scope: it has one word for its class, two words for its name, one word for an inferred
 * name.
 */
inline uint64_t has_class = 0x400;
inline uint64_t has_name = 0x3000;
inline uint64_t has_inferred_name = 0x4000;
/*
 * Bits of a position: it is an offset in the bytecode plus one instead of a position in the source;
 * the function has no name.
 */
inline uint64_t in_bytecode = 0x800000;
inline uint64_t is_anonymous = 0x400000;

this uint64_t function;
this uint64_t shared;
this uint64_t script;
this uint64_t name;
this uint64_t type;
this uint64_t inferred;
this uint64_t at;
this uint64_t flags;
this uint64_t locals;
this uint64_t start;
this uint64_t source;
this uint64_t length;
this uint64_t bytecode;
this uint64_t offset;
this uint64_t table;
this uint64_t table_size;
this uint64_t position;
this uint64_t text;
this uint64_t second;
this uint64_t chars;
this uint64_t size;
this uint64_t words;
this uint64_t words_size;
this int is_named;
this int n;
this int hops;

dtrace:walker::
{
	this->function = 0;
	if (fp != 0 && (*(userland uint64_t *)(fp + fp_context) & 1) != 0)
		this->function = *(userland uint64_t *)(fp + fp_function);
	this->shared = 0;
	if ((this->function & 1) != 0) {
		this->shared = *(userland uint64_t *)(this->function - 1 + function_shared);
		this->type = *(userland uint64_t *)(this->shared - 1);
		if ((this->shared & 1) == 0 || *(userland uint16_t *)(this->type - 1 + map_type) != type_shared)
			this->shared = 0;
	}
	if (this->shared != 0) {
		/* A builtin function has no script, and a name instead of a scope. */
		this->script = *(userland uint64_t *)(this->shared - 1 + shared_script);
		this->type = *(userland uint64_t *)(this->script - 1);
		if (*(userland uint16_t *)(this->type - 1 + map_type) != type_script)
			this->script = 0;
		this->name = *(userland uint64_t *)(this->shared - 1 + shared_name);
		this->inferred = 0;
		this->start = 0;
		this->type = 0;
		if ((this->name & 1) == 0)
			this->name = 0;
		else {
			this->type = *(userland uint64_t *)(this->name - 1);
			this->type = *(userland uint16_t *)(this->type - 1 + map_type);
		}
		if (this->type == type_scope) {
			this->flags = *(userland uint64_t *)(this->name - 1 + scope_flags) >> 32;
			this->locals = *(userland uint64_t *)(this->name - 1 + scope_locals) >> 32;
			this->at = this->name - 1 + scope_rest + this->locals * 8 + (this->locals < locals_max ? this->locals : 1) * 8;
			this->name = 0;
			if ((this->flags & has_class) != 0)
				this->at = this->at + 8;
			if ((this->flags & has_name) != 0) {
				this->name = *(userland uint64_t *)this->at;
				this->at = this->at + 16;
			}
			if ((this->flags & has_inferred_name) != 0) {
				this->inferred = *(userland uint64_t *)this->at;
				this->at = this->at + 8;
			}
			this->start = *(userland uint64_t *)this->at >> 32;
		}

		/*
		 * Read the names of the function and of the file. A string may refer to other
		 * strings. Of a concatenated name of a function, use the last part.
		 */
		this->is_named = 0;
		this->n = 0;
		this->words = 0;
		this->words_size = 0;
		while (this->n < 3) {
			this->text = this->n == 0 ? this->name : this->inferred;
			if (this->n == 2)
				this->text = this->script != 0 ? *(userland uint64_t *)(this->script - 1 + script_name) : 0;
			this->chars = 0;
			this->size = 0;
			this->hops = 0;
			while ((this->text & 1) != 0 && this->hops < 8) {
				this->hops = this->hops + 1;
				this->type = *(userland uint64_t *)(this->text - 1);
				this->type = *(userland uint16_t *)(this->type - 1 + map_type);
				this->size = *(userland uint32_t *)(this->text - 1 + string_length);
				if (this->type < type_no_string && this->size != 0)
					this->is_named = this->is_named | (this->n < 2);
				if (this->type >= type_no_string)
					this->text = 0;
				else if ((this->type & representation) == is_thin)
					this->text = *(userland uint64_t *)(this->text - 1 + thin_actual);
				else if ((this->type & representation) == is_cons) {
					this->second = *(userland uint64_t *)(this->text - 1 + cons_second);
					if (*(userland uint32_t *)(this->second - 1 + string_length) == 0)
						this->text = *(userland uint64_t *)(this->text - 1 + cons_first);
					else
						this->text = this->n < 2 ? this->second : 0;
				} else {
					if ((this->type & representation) == 0 && (this->type & one_byte) != 0)
						this->chars = this->text - 1 + string_chars;
					this->text = 0;
				}
			}
			if (this->chars == 0)
				this->size = 0;
			/* Use an inferred name if there is no other. */
			if (this->n < 2 && this->words_size == 0) {
				this->words = this->chars;
				this->words_size = this->size;
			}
			this->n = this->n + 1;
		}

		/*
		 * Use the position in the bytecode if the interpreter executes this function,
		 * otherwise the start of the function. The length of the source distinguishes
		 * sources of the same name.
		 */
		this->length = 0;
		if (this->script != 0) {
			this->source = *(userland uint64_t *)(this->script - 1 + script_source);
			if ((this->source & 1) != 0)
				this->length = *(userland uint32_t *)(this->source - 1 + string_length);
		}
		this->position = this->start;
		if (this->position >= is_anonymous)
			this->length = 0;
		this->table = 0;
		this->table_size = 0;
		this->bytecode = *(userland uint64_t *)(this->shared - 1 + shared_data);
		this->type = 0;
		if ((this->bytecode & 1) != 0) {
			this->type = *(userland uint64_t *)(this->bytecode - 1);
			this->type = *(userland uint16_t *)(this->type - 1 + map_type);
		}
		/*
		 * Baseline code has the bytecode, which the interpreter may execute in an outer
		 * frame.
		 */
		if (this->type == type_code) {
			this->bytecode = *(userland uint64_t *)(this->bytecode - 1 + code_bytecode);
			this->type = type_bytecode;
		}
		this->offset = *(userland uint64_t *)(fp + fp_bytecode_offset);
		if (this->type == type_bytecode && *(userland uint64_t *)(fp + fp_bytecode) == this->bytecode && (this->offset & 0xffffffff) == 0) {
			this->table = *(userland uint64_t *)(this->bytecode - 1 + bytecode_positions);
			this->type = *(userland uint64_t *)(this->table - 1);
			if (*(userland uint16_t *)(this->type - 1 + map_type) != type_bytes)
				this->table = 0;
		}
		if (this->table != 0) {
			this->table_size = *(userland uint64_t *)(this->table - 1 + bytes_length) >> 32;
			this->table = this->table - 1 + bytes_data;
			/* The entry of the function has offset -1. */
			this->position = in_bytecode | (this->offset >> 32) - bytecode_first + 2 & 0x3fffff;
		}
		if (!this->is_named)
			this->position = this->position | is_anonymous;
		__frame(this->words, this->words_size, this->chars, this->size, this->position, this->table, this->table_size, this->length);
	}
}
