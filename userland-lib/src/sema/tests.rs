// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What actions and operators take and refuse, in DTrace's words.

use crate::compile::{Compiler, Settings};
use crate::program::Program;
use crate::source::Source;
use crate::world::Nowhere;
use dtrace_uapi::action::Action;

fn compile(text: &str) -> Result<Program, String> {
    Compiler::new(&Nowhere)
        .compile(&Source::argument(text), &settings())
        .map_err(|error| error.to_string())
}

/// `Nowhere` has no probes; that is not what these tests are about.
fn settings() -> Settings {
    Settings {
        allow_zero_matches: true,
        ..Settings::default()
    }
}

/// The error of a clause with this body.
fn refused(body: &str) -> String {
    match compile(&format!("BEGIN {{ {body} }}")) {
        Err(error) => error,
        Ok(_) => panic!("`{body}` was accepted"),
    }
}

/// The kinds of the actions of a clause with this body.
fn actions(body: &str) -> Vec<Action> {
    let program = compile(&format!("BEGIN {{ {body} }}")).expect(body);
    let [clause] = &program.clauses[..] else {
        panic!("one clause expected of `{body}`");
    };
    clause.actions.iter().map(|action| action.kind).collect()
}

/// The error that an argument is not what the prototype asks for.
fn argument(tag: &str, function: &str, number: u32, wanted: &str, given: &str) -> String {
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
    // The keys of an aggregation are records.
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

#[test]
fn subroutines_take_pointers_to_their_types() {
    let declared = "struct in6_addr { char a[16]; }; struct mutex { int a; }; \
                    struct task_struct { int a; };";
    let check = |body: &str| compile(&format!("{declared} BEGIN {{ {body} }}"));
    for body in [
        "inet_ntoa6((struct in6_addr *)arg0);",
        "inet_ntoa6((void *)arg0, 1);",
        "inet_ntoa((uint32_t *)arg0);",
        "mutex_owned((struct mutex *)arg0);",
        "rw_read_held((struct mutex *)arg0);",
        "strlen(taskargs((struct task_struct *)arg0));",
        "taskargs(0);",
    ] {
        check(body).expect(body);
    }
    for (body, error) in [
        (
            "inet_ntoa6((int *)arg0);",
            argument("D_PROTO_ARG", "inet_ntoa6", 1, "struct in6_addr *", "int *"),
        ),
        (
            "inet_ntoa6((void *)arg0, arg1);",
            argument("D_PROTO_ARG", "inet_ntoa6", 2, "int", "int64_t"),
        ),
        (
            "inet_ntoa((char *)arg0);",
            argument("D_PROTO_ARG", "inet_ntoa", 1, "ipaddr_t *", "char *"),
        ),
        (
            "mutex_owned(\"lock\");",
            argument("D_PROTO_ARG", "mutex_owned", 1, "struct mutex *", "string"),
        ),
        (
            "taskargs(pid);",
            argument(
                "D_PROTO_ARG",
                "taskargs",
                1,
                "struct task_struct *",
                "pid_t",
            ),
        ),
        (
            "taskargs((struct mutex *)arg0);",
            argument(
                "D_PROTO_ARG",
                "taskargs",
                1,
                "struct task_struct *",
                "struct mutex *",
            ),
        ),
        (
            "strtok(1234, \"a\");",
            argument("D_PROTO_ARG", "strtok", 1, "char *", "int"),
        ),
    ] {
        assert_eq!(check(body).map(drop), Err(error), "{body}");
    }
}

#[test]
fn scratch_memory_is_told_from_other_memory() {
    for body in [
        "p = (char *)alloca(8); p = (char *)0; p = p + 1; bcopy(\"a\", p, 1);",
        "copyinto(arg0, 4, this->p = alloca(4));",
        "bcopy(probename, (string)alloca(8), 1);",
        "p = (char *)alloca(1); trace(p == (char *)0 ? (char *)50 : p);",
        // What is not known may be right.
        "bcopy(\"a\", (void *)arg0, 1);",
    ] {
        compile(&format!("BEGIN {{ {body} }}")).expect(body);
    }
    let reused = "cannot reuse the same identifier for both alloca and non-alloca allocations";
    let pointer = |function, number| {
        argument(
            "D_PROTO_ARG",
            function,
            number,
            "alloca pointer",
            "non-alloca pointer",
        )
    };
    for (body, error) in [
        (
            "p = alloca(8); p = (void *)5;",
            format!("[D_ALLOCA_INCOMPAT] p: {reused}"),
        ),
        (
            "self->p = (void *)5; self->p = alloca(8);",
            format!("[D_ALLOCA_INCOMPAT] p: {reused}"),
        ),
        (
            "p = (char *)alloca(1); p = p == (char *)0 ? (char *)50 : p;",
            "[D_ALLOCA_INCOMPAT] ternary conditional with alloca and non-alloca branches cannot be assigned to a variable".to_owned(),
        ),
        ("copyinto(1, 2, \"\");", pointer("copyinto", 3)),
        ("bcopy(\"a\", (void *)5, 1);", pointer("bcopy", 2)),
        ("bcopy(\"a\", (void *)0, 1);", pointer("bcopy", 2)),
        (
            "s = (string)alloca(8); bcopy(probename, s, 1);",
            pointer("bcopy", 2),
        ),
        (
            "this->s = probename; copyinto(arg0, 1, (void *)this->s);",
            pointer("copyinto", 3),
        ),
    ] {
        assert_eq!(refused(body), error, "{body}");
    }
    let settings = Settings {
        scratchsize: Some(1024),
        ..settings()
    };
    let compile = |text: &str| {
        Compiler::new(&Nowhere)
            .compile(&Source::argument(text), &settings)
            .map_err(|error| error.to_string())
    };
    assert!(compile("BEGIN { p = alloca(1024); }").is_ok());
    assert_eq!(
        compile("BEGIN { p = alloca(1025); }").map(drop),
        Err("[D_ALLOCA_SIZE] alloca(1025) size larger than scratchsize 1024".to_owned())
    );
}

#[test]
fn actions_on_aggregations_and_memory_tell_what_they_miss() {
    for (body, start) in [
        (
            "@a += count();",
            "[D_AGG_OP] aggregation must be assigned by operator =",
        ),
        ("clear(@a);", "[D_CLEAR_AGGBAD] undefined aggregation: @a"),
        ("trunc(@a);", "[D_TRUNC_AGGBAD] undefined aggregation: @a"),
        (
            "normalize(@a, 1);",
            "[D_NORMALIZE_AGGBAD] undefined aggregation: @a",
        ),
        (
            "denormalize(@a);",
            "[D_NORMALIZE_AGGBAD] undefined aggregation: @a",
        ),
        ("printa(@a);", "[D_PRINTA_AGGBAD] undefined aggregation: @a"),
        (
            "trunc(5);",
            "[D_TRUNC_AGGARG] trunc( ) argument #1 is incompatible",
        ),
        (
            "denormalize(\"a\");",
            "[D_NORMALIZE_AGGARG] denormalize( ) argument #1 is incompatible",
        ),
        (
            "@a = count(); normalize(@a, 0);",
            "[D_NORMALIZE_SCALAR] normalize( ) argument #2",
        ),
        (
            "@a = count(); @b[1] = count(); printa(@a, @b);",
            "[D_PRINTA_AGGKEY] printa( ): @a and @b",
        ),
        (
            "@a[1] = count(); @b[\"x\"] = count(); printa(@a, @b);",
            "[D_PRINTA_AGGPROTO] printa( ): @b[ ] key #1",
        ),
        (
            "tracemem(execname, 8);",
            "[D_TRACEMEM_ADDR] tracemem( ) argument #1 is incompatible",
        ),
        (
            "ustack(0);",
            "[D_USTACK_FRAMES] ustack( ) argument #1 must be",
        ),
        (
            "ustack(1, pid);",
            "[D_USTACK_STRSIZE] ustack( ) argument #2 must be",
        ),
        ("stack(pid);", "[D_STACK_SIZE] stack( ) size must be"),
        (
            "stack(1025);",
            "[D_STACK_SIZE] stack( ) size must be from 1 to 1024 frames",
        ),
        (
            "x = ustack(1025, 1);",
            "[D_USTACK_FRAMES] ustack( ) argument #1 must be from 1 to 1024 frames",
        ),
        (
            "x = stack(5); x = stack(6);",
            "[D_OP_INCOMPAT] operands have incompatible types: \"dt_stack_t\" = \"dt_stack_t\"",
        ),
        (
            "stack(5).depth = 2;",
            "[D_OP_LVAL] operator = requires modifiable lvalue",
        ),
        (
            "stack(5).addrs[1]++;",
            "[D_OP_LVAL] operator ++ requires modifiable lvalue",
        ),
        (
            "ustack(5) = stack(5);",
            "[D_OP_LVAL] operator = requires modifiable lvalue",
        ),
        ("x = stack(5); trace(x + 1);", "[D_OP_INCOMPAT]"),
        (
            "x = stack(5); trace(x.depht);",
            "[D_TYPE_MEMBER] depht is not a member of dt_stack_t",
        ),
        ("x = jstack(5);", "[D_CG_EXPR] action jstack( )"),
        (
            "(1, stack(5)).depth = 2;",
            "[D_OP_LVAL] operator = requires modifiable lvalue",
        ),
        (
            "(x = stack(5)).depth = 2;",
            "[D_OP_LVAL] operator = requires modifiable lvalue",
        ),
        (
            "(arg0 ? stack(5) : stack(5)).addrs[1] = 2;",
            "[D_OP_LVAL] operator = requires modifiable lvalue",
        ),
        (
            "@[stack(5)] = count(); x = stack(5); @[x] = count();",
            "[D_PROTO_ARG] @[ ] key #1",
        ),
        (
            "printf(\"\");",
            "[D_PRINTF_FMT_EMPTY] printf( ) format string is empty",
        ),
        (
            "printf(\"%@d\", 1);",
            "[D_PRINTF_AGG_CONV] %@ conversion requires",
        ),
        (
            "printf(\"%*d\", \"a\", 1);",
            "[D_PRINTF_DYN_TYPE] printf( ) argument #2 is incompatible",
        ),
        (
            "printf(\"%*d\");",
            "[D_PRINTF_DYN_PROTO] printf( ) prototype mismatch",
        ),
        (
            "trace(*curthread);",
            "[D_DEREF_VOID] cannot dereference pointer to void",
        ),
    ] {
        let error = refused(body);
        assert!(error.starts_with(start), "{body}: {error}");
    }
}

#[test]
fn distributions_are_checked_in_programs() {
    for (body, tag) in [
        ("@ = lquantize(1, pid, 2);", "D_LQUANT_BASETYPE"),
        ("@ = lquantize(1, 1 << 40, 2);", "D_LQUANT_BASEVAL"),
        ("@ = lquantize(1, 1, pid);", "D_LQUANT_LIMTYPE"),
        ("@ = lquantize(1, 1, 1 << 40);", "D_LQUANT_LIMVAL"),
        ("@ = lquantize(1, 10, 1);", "D_LQUANT_MISMATCH"),
        ("@ = lquantize(1, 0, 10, pid);", "D_LQUANT_STEPTYPE"),
        ("@ = lquantize(1, 0, 1000000, 70000);", "D_LQUANT_STEPVAL"),
        ("@ = lquantize(1, 0, 10, 20);", "D_LQUANT_STEPLARGE"),
        ("@ = lquantize(1, 0, 1000000, 1);", "D_LQUANT_STEPSMALL"),
        (
            "@ = lquantize(1, 0, 9); @ = lquantize(1, 1, 9);",
            "D_LQUANT_MATCHBASE",
        ),
        (
            "@ = lquantize(1, 0, 9); @ = lquantize(1, 0, 8);",
            "D_LQUANT_MATCHLIM",
        ),
        (
            "@ = lquantize(1, 0, 9, 3); @ = lquantize(1, 0, 9, 1);",
            "D_LQUANT_MATCHSTEP",
        ),
        ("@ = llquantize(1, pid, 0, 6, 20);", "D_LLQUANT_FACTORTYPE"),
        ("@ = llquantize(1, 1, 0, 6, 20);", "D_LLQUANT_FACTORVAL"),
        ("@ = llquantize(1, 10, pid, 6, 20);", "D_LLQUANT_LMAGTYPE"),
        ("@ = llquantize(1, 10, -1, 6, 20);", "D_LLQUANT_LMAGVAL"),
        ("@ = llquantize(1, 10, 0, pid, 20);", "D_LLQUANT_HMAGTYPE"),
        ("@ = llquantize(1, 10, 5, 4, 20);", "D_LLQUANT_HMAGVAL"),
        ("@ = llquantize(1, 10, 0, 6, pid);", "D_LLQUANT_STEPTYPE"),
        ("@ = llquantize(1, 10, 0, 6, 3);", "D_LLQUANT_STEPVAL"),
        (
            "@ = llquantize(1, 10, 0, 6, 20); @ = llquantize(1, 20, 0, 6, 20);",
            "D_LLQUANT_MATCHFACTOR",
        ),
        (
            "@ = llquantize(1, 10, 0, 6, 20); @ = llquantize(1, 10, 1, 6, 20);",
            "D_LLQUANT_MATCHLMAG",
        ),
        (
            "@ = llquantize(1, 10, 0, 6, 20); @ = llquantize(1, 10, 0, 5, 20);",
            "D_LLQUANT_MATCHHMAG",
        ),
        (
            "@ = llquantize(1, 10, 0, 6, 20); @ = llquantize(1, 10, 0, 6, 10);",
            "D_LLQUANT_MATCHSTEPS",
        ),
    ] {
        let error = refused(body);
        assert!(error.starts_with(&format!("[{tag}]")), "{body}: {error}");
    }
}
