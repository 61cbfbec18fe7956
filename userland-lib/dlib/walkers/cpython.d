/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of Python code: the part that is common to all versions of CPython that have a file here.
 *
 * Since 3.13 the runtime begins with the offsets that debuggers need (_Py_DebugOffsets of
 * Include/internal/pycore_runtime.h or pycore_debug_offsets.h), so nothing else here depends on the
 * build; free-threaded builds, without the global lock, are not supported. For older versions the
 * offsets are those of a default build.
 *
 * The frames of a thread are a list, innermost first. One evaluator executes the frames up to the
 * next one that is owned by an evaluator; that one stands for the evaluator itself. In 3.11
 * instead, the outermost frame of an evaluator has is_entry set, and the evaluators are a list of
 * their own.
 */

#pragma walker evaluator _PyEval_EvalFrameDefault
#pragma walker lines python

inline uint64_t nth = __walk[0];
inline uint64_t tid_here = __walk[5];
inline uint64_t next_evaluator = __walk[6];
inline uint64_t runtime = __walk[1] + __walk[16];
inline uint64_t interpreters_head = __walk[17];
inline uint64_t interpreter_next = __walk[18];
inline uint64_t threads_head = __walk[19];
inline uint64_t thread_next = __walk[20];
inline uint64_t current_frame = __walk[21];
inline uint64_t native_thread_id = __walk[22];
inline uint64_t frame_previous = __walk[23];
inline uint64_t frame_executable = __walk[24];
inline uint64_t frame_instr_ptr = __walk[25];
inline uint64_t frame_owner = __walk[26];
inline uint64_t code_filename = __walk[27];
inline uint64_t code_qualname = __walk[28];
inline uint64_t code_linetable = __walk[29];
inline uint64_t code_firstlineno = __walk[30];
inline uint64_t code_adaptive = __walk[31];
inline uint64_t bytes_size = __walk[32];
inline uint64_t bytes_value = __walk[33];
inline uint64_t unicode_state = __walk[34];
inline uint64_t unicode_length = __walk[35];
inline uint64_t ascii_size = __walk[36];

/*
 * FRAME_OWNED_BY_CSTACK or FRAME_OWNED_BY_INTERPRETER of pycore_frame.h or
 * pycore_interpframe_structs.h.
 */
inline int owned_by_evaluator = 3;
/* The bits `compact` and `ascii` of PyASCIIObject. */
inline uint32_t compact_ascii = 0x60;
/* The bits `kind` of PyASCIIObject, and their value for one byte per character. */
inline uint32_t kind = 0x1c;
inline uint32_t latin = 0x04;

this uint64_t interpreter;
this uint64_t thread;
this uint64_t frame;
this uint64_t evaluator;
this uint64_t code;
this uint64_t text;
this uint32_t state;
this uint64_t function;
this uint64_t function_size;
this uint64_t file;
this uint64_t file_size;
this uint64_t table;
this uint64_t entry;
this int is_done;

dtrace:walker::
{
	if (nth == 0) {
		this->frame = 0;
		this->interpreter = *(userland uint64_t *)(runtime + interpreters_head);
		this->thread = 0;
		if (this->interpreter != 0)
			this->thread = *(userland uint64_t *)(this->interpreter + threads_head);
	}

	/*
	 * Find the thread. It may belong to several interpreters, and may have no frame in some of
	 * them.
	 */
	while (this->frame == 0 && this->interpreter != 0) {
		if (this->thread == 0) {
			this->interpreter = *(userland uint64_t *)(this->interpreter + interpreter_next);
			if (this->interpreter != 0)
				this->thread = *(userland uint64_t *)(this->interpreter + threads_head);
		} else {
			if (*(userland uint64_t *)(this->thread + native_thread_id) == tid_here) {
				this->evaluator = *(userland uint64_t *)(this->thread + current_frame);
				this->frame = has_cframe ? *(userland uint64_t *)(this->evaluator + cframe_current) : this->evaluator;
			}
			this->thread = *(userland uint64_t *)(this->thread + thread_next);
		}
	}

	/*
	 * A frame that stands for an evaluator is on the evaluator's native stack. If it is on the
	 * stack of an outer evaluator, this evaluator has not begun yet. If frames below the next
	 * evaluator remain, an evaluator was not noted, and its frames are added as well.
	 */
	this->is_done = 0;
	while (this->frame != 0 && !this->is_done) {
		this->entry = this->frame;
		if (has_entries) {
			while (this->entry != 0 && *(userland uint8_t *)(this->entry + frame_owner) == 0)
				this->entry = *(userland uint64_t *)(this->entry + frame_previous);
			if (this->entry != 0)
				this->entry = *(userland uint64_t *)(this->entry + frame_previous);
		} else {
			while (this->entry != 0 && *(userland uint8_t *)(this->entry + frame_owner) != owned_by_evaluator)
				this->entry = *(userland uint64_t *)(this->entry + frame_previous);
			this->evaluator = this->entry;
		}
		if (this->evaluator >= next_evaluator)
			this->is_done = 1;
		else {
			while (this->frame != this->entry) {
				this->code = *(userland uint64_t *)(this->frame + frame_executable) & ~tag;

				/*
				 * The UTF-8 of a string that is not ASCII is stored separately once
				 * it was requested. Otherwise use the text if it has one byte per
				 * character.
				 */
				this->text = *(userland uint64_t *)(this->code + code_qualname);
				this->state = *(userland uint32_t *)(this->text + unicode_state);
				this->function_size = *(userland uint64_t *)(this->text + unicode_length);
				if ((this->state & compact_ascii) == compact_ascii)
					this->function = this->text + ascii_size;
				else if (*(userland uint64_t *)(this->text + ascii_size + 8) != 0) {
					this->function = *(userland uint64_t *)(this->text + ascii_size + 8);
					this->function_size = *(userland uint64_t *)(this->text + ascii_size);
				} else
					this->function = (this->state & kind) == latin ? this->text + ascii_size + latin_offset : 0;
				this->text = *(userland uint64_t *)(this->code + code_filename);
				this->state = *(userland uint32_t *)(this->text + unicode_state);
				this->file_size = *(userland uint64_t *)(this->text + unicode_length);
				if ((this->state & compact_ascii) == compact_ascii)
					this->file = this->text + ascii_size;
				else if (*(userland uint64_t *)(this->text + ascii_size + 8) != 0) {
					this->file = *(userland uint64_t *)(this->text + ascii_size + 8);
					this->file_size = *(userland uint64_t *)(this->text + ascii_size);
				} else
					this->file = (this->state & kind) == latin ? this->text + ascii_size + latin_offset : 0;
				this->table = *(userland uint64_t *)(this->code + code_linetable);
				/*
				 * In a shim that calls __init__ both strings are the same. It is
				 * not a function.
				 */
				if (*(userland uint64_t *)(this->code + code_qualname) != *(userland uint64_t *)(this->code + code_filename))
					__frame(this->function, this->function_size, this->file, this->file_size,
					    (*(userland uint64_t *)(this->frame + frame_instr_ptr) - this->code - code_adaptive) / 2,
					    this->table + bytes_value, *(userland uint64_t *)(this->table + bytes_size),
					    *(userland uint32_t *)(this->code + code_firstlineno));
				this->frame = *(userland uint64_t *)(this->frame + frame_previous);
			}
			if (has_entries)
				this->evaluator = *(userland uint64_t *)(this->evaluator + cframe_previous);
			else if (this->frame != 0)
				this->frame = *(userland uint64_t *)(this->frame + frame_previous);
		}
	}
}
