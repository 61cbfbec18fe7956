// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What subroutines, and actions on aggregations and memory, accept and refuse.

use super::tests::{argument, compile, refused, settings};
use crate::compile::{Compiler, Settings};
use crate::source::Source;
use dtrace_objects::processes::Nowhere;

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
        // A pointer of unknown origin may point to scratch memory.
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
            "x = stack(); x = ustack(21);",
            "[D_OP_INCOMPAT] operands have incompatible types: \"dt_stack_t\" = \"dt_stack_t\"",
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

/// Holds by default. If `ustackframes` is not its default, it is also the size of the value of
/// `ustack()`, which then has another type than that of `stack()` unless both have the same size.
#[test]
fn stacks_of_both_kinds_have_one_type() {
    let both = |ustackframes| {
        let settings = Settings {
            ustackframes,
            ..settings()
        };
        let source = Source::argument("BEGIN { x = stack(); x = ustack(); }");
        let program = Compiler::new(&Nowhere).compile(&source, &settings);
        program.is_ok()
    };
    assert!(both(None));
    assert!(both(Some(100)));
    assert!(both(Some(20)));
    assert!(!both(Some(30)));
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
