// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What actions and operators accept and refuse, in DTrace's words.

use crate::compile::{Compiler, Settings};
use crate::program::Program;
use crate::source::Source;
use dtrace_objects::processes::Nowhere;
use dtrace_uapi::action::Action;

pub(super) fn compile(text: &str) -> Result<Program, String> {
    Compiler::new(&Nowhere)
        .compile(&Source::argument(text), &settings())
        .map_err(|error| error.to_string())
}

/// Settings that allow descriptions to match nothing. These tests are not about probes.
pub(super) fn settings() -> Settings {
    Settings {
        allow_zero_matches: true,
        ..Settings::default()
    }
}

/// Returns the error of a clause with this body.
pub(super) fn refused(body: &str) -> String {
    match compile(&format!("BEGIN {{ {body} }}")) {
        Err(error) => error,
        Ok(_) => panic!("`{body}` was accepted"),
    }
}

/// Returns the kinds of the actions of a clause with this body.
fn actions(body: &str) -> Vec<Action> {
    let program = compile(&format!("BEGIN {{ {body} }}")).expect(body);
    let [clause] = &program.clauses[..] else {
        panic!("one clause expected of `{body}`");
    };
    clause.actions.iter().map(|action| action.kind).collect()
}

/// Returns the error that an argument does not match the prototype.
pub(super) fn argument(
    tag: &str,
    function: &str,
    number: u32,
    wanted: &str,
    given: &str,
) -> String {
    format!(
        "[{tag}] {function}( ) argument #{number} is incompatible with prototype:\n\tprototype: {wanted}\n\t argument: {given}"
    )
}

#[test]
fn an_action_has_no_value() {
    let context = "may not be called from a D expression (D program context required)";
    for (body, message) in [
        (
            "x = (trace(1), 3);",
            format!("[D_CG_EXPR] action trace( ) {context}"),
        ),
        (
            "trace((count(), 1));",
            format!("[D_CG_EXPR] aggregating function count( ) {context}"),
        ),
        (
            "trace(trace(1));",
            "[D_TRACE_VOID] trace( ) may not be applied to a void expression".to_owned(),
        ),
        (
            "stringof(panic());",
            "[D_STRINGOF_TYPE] cannot apply stringof to a value of type void".to_owned(),
        ),
        (
            "exit(exit(0));",
            argument("D_PROTO_ARG", "exit", 1, "int", "void"),
        ),
        (
            "progenyof(trace(1));",
            argument("D_PROTO_ARG", "progenyof", 1, "pid_t", "void"),
        ),
        (
            "printf(\"%d\", printf(\"\"));",
            "[D_PRINTF_ARG_TYPE] printf( ) argument #2 is incompatible with conversion #1 prototype:\n\tconversion: %d\n\t prototype: char, short, int, long, or long long\n\t  argument: void".to_owned(),
        ),
        (
            "clear(count());",
            argument("D_CLEAR_AGGARG", "clear", 1, "aggregation", "void"),
        ),
        (
            "normalize(count(), 2);",
            argument("D_NORMALIZE_AGGARG", "normalize", 1, "aggregation", "void"),
        ),
        (
            "@[trace(0)] = count();",
            "[D_KEY_TYPE] a key of an aggregation must have a value".to_owned(),
        ),
    ] {
        assert_eq!(refused(body), message, "{body}");
    }
}

#[test]
fn an_aggregation_is_no_operand() {
    for (body, start) in [
        (
            "@a = count(); trace(@a);",
            "[D_TRACE_DYN] trace( ) may not be applied to a dynamic",
        ),
        ("@a = count(); trace(@a + 1);", "[D_OP_INCOMPAT]"),
        ("@a = count(); @b[@a] = count();", "[D_KEY_TYPE]"),
        (
            "@a = count(); trunc(@a, @a);",
            "[D_PROTO_ARG] trunc( ) argument #2",
        ),
        (
            "@a = count(); @a;",
            "[D_AGG_NULL] expression has null effect",
        ),
        ("@a;", "[D_IDENT_UNDEF] undefined aggregation: @a"),
        (
            "@a[0][1] = count();",
            "[D_AGG_MDIM] aggregation @a may not be used",
        ),
        (
            "@a = f();",
            "[D_FUNC_UNDEF] undefined aggregating function: f",
        ),
        (
            "@a = rand();",
            "[D_AGG_FUNC] rand( ) is not an aggregating function",
        ),
        ("printa(1);", "[D_PRINTA_AGGARG] printa( ) argument #1"),
        (
            "printa(\"%d\");",
            "[D_PRINTA_PROTO] printa( ) prototype mismatch",
        ),
    ] {
        let error = refused(body);
        assert!(error.starts_with(start), "{body}: {error}");
    }
}

#[test]
fn memory_is_read_where_it_is() {
    use dtrace_uapi::types::{DIF_TF_BYREF, DIF_TF_BYUREF};
    for (body, flags) in [
        ("tracemem(arg0, 8);", DIF_TF_BYREF),
        ("tracemem((userland char *)arg0, 8);", DIF_TF_BYUREF),
        ("print((int *)arg0);", DIF_TF_BYREF),
        ("print((userland int *)arg0);", DIF_TF_BYUREF),
    ] {
        let program = compile(&format!("BEGIN {{ {body} }}")).expect(body);
        let last = program.clauses[0].actions.last().expect("an action");
        let rtype = last.difo.as_ref().expect("code").rtype;
        assert_eq!(rtype.flags, flags, "{body}");
    }
}

#[test]
fn formats_and_constant_arguments_are_checked() {
    for (body, message) in [
        (
            "printf(1);",
            argument("D_PROTO_ARG", "printf", 1, "string", "int"),
        ),
        (
            "printf(probename);",
            argument("D_PRINTF_ARG_FMT", "printf", 1, "string constant", "string"),
        ),
        (
            "printf(\"%*1$d\", 1, 2);",
            "[D_SYNTAX] format conversion #1 uses unsupported positional format (%n$)".to_owned(),
        ),
        (
            "printf(\"%d %.*.*d\", 1);",
            "[D_SYNTAX] format conversion #2 has more than one '.' specified".to_owned(),
        ),
        (
            "freopen(\".\");",
            "[D_FREOPEN_INVALID] freopen( ) argument #1 cannot be \".\"".to_owned(),
        ),
        (
            "setopt(\"quiet\", 1);",
            argument("D_PROTO_ARG", "setopt", 2, "char *", "int"),
        ),
        (
            "chill(\"long\");",
            argument("D_PROTO_ARG", "chill", 1, "int", "string"),
        ),
        (
            "tracemem(123, \"16\");",
            argument("D_PROTO_ARG", "tracemem", 2, "size_t", "string"),
        ),
        (
            "tracemem(123, -1);",
            "[D_TRACEMEM_SIZE] tracemem( ) argument #2 must be a non-zero positive integral constant expression".to_owned(),
        ),
        (
            "print(1);",
            argument("D_PROTO_ARG", "print", 1, "void *", "int"),
        ),
        (
            "print((void *)1);",
            "[D_PRINT_SIZE] print( ) argument #1 reference has type 'void' with size 0; cannot print( ) it.".to_owned(),
        ),
    ] {
        assert_eq!(refused(body), message, "{body}");
    }
}

#[test]
fn actions_make_their_records() {
    use Action::{Chill, Difexpr, Freopen, Tracemem, TracememDynsize};
    for (body, kinds) in [
        ("chill(4000000000);", &[Chill][..]),
        ("freopen(\"..\");", &[Freopen]),
        ("freopen(\"\");", &[Freopen]),
        (
            "print(alloca(4) == 0 ? (int *)0 : (int *)1);",
            &[Difexpr, Tracemem],
        ),
        ("tracemem(1, 64, 8);", &[TracememDynsize, Tracemem]),
    ] {
        assert_eq!(actions(body), kinds, "{body}");
    }
}

#[test]
fn strings_can_be_indexed_and_compared_with_null() {
    for body in [
        "s = \"abc\"; trace(s[1]); trace(*s); trace(s + 1); trace(1 + s);",
        "trace(execname[2]);",
        "x = strchr(\"abc\", 'z') == (void *)0; s = execname; y = (void *)0 != s ? 1 : 2;",
        "s = \"abc\"; s = (void *)0;",
        "*(char *)0;",
        "strtok(\"a b\", \" \") == (void *)0;",
    ] {
        compile(&format!("BEGIN {{ {body} }}")).expect(body);
    }
    for (body, start) in [
        ("s = \"abc\"; trace(s * 2);", "[D_OP_ARITH]"),
        ("s = \"abc\"; trace(s == 1);", "[D_OP_INCOMPAT]"),
        ("s = \"abc\"; s = 1;", "[D_OP_INCOMPAT]"),
        ("1 + 2;", "[D_EXPR_NULL] expression has null effect"),
        ("avg(1);", "[D_CG_EXPR] aggregating function avg( )"),
        ("@a[1];", "[D_AGG_NULL] expression has null effect"),
        (
            "x = 1 ? trace(1) : trace(2);",
            "[D_OP_ACT] action cannot be used in a conditional",
        ),
        (
            "p -= trace(0);",
            "[D_VAR_UNDEF] p has not yet been declared or assigned",
        ),
        (
            "p = 1; p += alloca(1);",
            "[D_OP_VFPTR] operator += requires left-hand scalar",
        ),
    ] {
        let error = refused(body);
        assert!(error.starts_with(start), "{body}: {error}");
    }
}

#[test]
fn what_floating_point_numbers_cannot_do() {
    const INTEGRAL: &str = "requires operands of integral type";
    for (body, start) in [
        (
            "trace(1.5 % 2);",
            format!("[D_OP_INT] operator % {INTEGRAL}"),
        ),
        (
            "trace(1 & 2.0f);",
            format!("[D_OP_INT] operator & {INTEGRAL}"),
        ),
        (
            "trace(1.0 | 2);",
            format!("[D_OP_INT] operator | {INTEGRAL}"),
        ),
        (
            "trace(1.0 ^ 2);",
            format!("[D_OP_INT] operator ^ {INTEGRAL}"),
        ),
        (
            "trace(1 << 2.0);",
            format!("[D_OP_INT] operator << {INTEGRAL}"),
        ),
        (
            "trace(1.0 >> 2);",
            format!("[D_OP_INT] operator >> {INTEGRAL}"),
        ),
        (
            "d = 1.5; d %= 2;",
            format!("[D_OP_INT] operator % {INTEGRAL}"),
        ),
        (
            "i = 1; i <<= 2.0;",
            format!("[D_OP_INT] operator << {INTEGRAL}"),
        ),
        (
            "trace(~1.5);",
            "[D_OP_INT] operator ~ requires an operand of integral type".into(),
        ),
    ] {
        assert_eq!(refused(body), start, "{body}");
    }
    for (body, start) in [
        ("trace((void *)arg0 + 1.5);", "[D_OP_INCOMPAT]"),
        ("trace(\"a\" == 1.5);", "[D_OP_INCOMPAT]"),
        ("trace(curthread == 1.5);", "[D_OP_INCOMPAT]"),
        ("trace(*1.5);", "[D_DEREF_NONPTR]"),
        ("trace(&1.5);", "[D_ADDROF_LVAL]"),
        ("trace(((int *)arg0)[1.5]);", "[D_OP_ARRFUN]"),
        ("trace((void *)1.5);", "[D_CAST_INVAL]"),
        ("trace((double)curthread);", "[D_CAST_INVAL]"),
        ("trace((string)1.5);", "[D_CAST_INVAL]"),
        ("trace(stringof(1.5));", "[D_STRINGOF_TYPE]"),
        ("trace(strlen(1.5));", "[D_PROTO_ARG]"),
        ("trace(lltostr(1.5));", "[D_PROTO_ARG]"),
        ("stack(1.5);", "[D_PROTO_ARG]"),
        ("exit(1.5);", "[D_PROTO_ARG]"),
        ("s = \"a\"; s = 1.5;", "[D_OP_INCOMPAT]"),
        ("1.5 = 2;", "[D_OP_LVAL]"),
        ("d = 1.5; +d = 2;", "[D_OP_LVAL]"),
        ("d = 1.5; (float)d = 2;", "[D_OP_LVAL]"),
        ("d = 1.5; (double)d = 2;", "[D_OP_LVAL]"),
        ("1.5;", "[D_EXPR_NULL]"),
        ("printf(\"%d\", *(float *)arg0);", "[D_PRINTF_ARG_TYPE]"),
        ("printf(\"%f\", arg0);", "[D_PRINTF_ARG_TYPE]"),
    ] {
        let error = refused(body);
        assert!(error.starts_with(start), "{body}: {error}");
    }
}

#[test]
fn a_predicate_that_is_always_true_costs_nothing() {
    let predicates = |text: &str| -> Vec<bool> {
        let program = compile(text).expect(text);
        let clauses = program.clauses.iter();
        clauses.map(|clause| clause.predicate.is_some()).collect()
    };
    let text = "BEGIN /1/ { trace(1); } BEGIN /0/ { trace(2); } BEGIN /pid/ { trace(3); }";
    assert_eq!(predicates(text), [false, true, true]);
}

#[test]
fn an_array_has_no_more_keys_than_the_tuple_stack() {
    assert!(compile("BEGIN { x[1,2,3,4,5,6,7,8] = 1; }").is_ok());
    assert_eq!(
        refused("x[1,2,3,4,5,6,7,8,9] = 1;"),
        "[D_UNKNOWN] Insufficient tuple registers to generate code"
    );
    // The keys of an aggregation are records and do not use the tuple stack.
    assert_eq!(actions("@[1,2,3,4,5,6,7,8,9] = count();").len(), 10);
}

#[test]
fn zero_frees_dynamic_variables_only() {
    let good = "struct s { int a; } ; this struct s v; BEGIN { x[1] = this->v; x[1] = 0; }";
    compile(good).expect("an element that is freed");
    let bad = "struct s { int a; } ; this struct s v; BEGIN { this->v = 0; }";
    let error = compile(bad).expect_err("a clause-local structure has its memory for good");
    assert!(error.starts_with("[D_OP_INCOMPAT]"), "{error}");
}

#[test]
fn a_constant_shift_keeps_all_bits() {
    for (body, size) in [
        ("1 << 30", 4),
        ("1 << 31", 8),
        ("1 << 32", 8),
        ("(1 << 63) - 1", 8),
    ] {
        let program = compile(&format!("BEGIN {{ trace({body}); }}")).expect(body);
        let difo = program.clauses[0].actions[0].difo.as_ref().expect("code");
        assert_eq!(difo.rtype.size, size, "{body}");
    }
}
