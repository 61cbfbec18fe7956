// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The C header says of every structure and control call what the Rust sources say: a C compiler is asked to agree.

use std::io::Write;
use std::mem::{offset_of, size_of};
use std::process::{Command, Stdio};

use dtrace_uapi::{action::Action, dif, dof, ioctl, limits, option, subr::Subr, types, var::Var};

/// Assertions on the size of a structure and the offsets of its fields.
macro_rules! layout {
    ($c:literal, $ty:ty, $($field:ident),*) => {{
        let mut text = format!("_Static_assert(sizeof({}) == {}, \"size\");\n", $c, size_of::<$ty>());
        $(text += &format!(
            "_Static_assert(__builtin_offsetof({}, {}) == {}, \"offset\");\n",
            $c, stringify!($field), offset_of!($ty, $field)
        );)*
        text
    }};
}

fn value(name: &str, value: u64) -> String {
    format!("_Static_assert((uint64_t){name} == {value}u, \"value\");\n")
}

fn compiles(assertions: &str) -> bool {
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../uapi/include");
    let mut cc = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-x", "c", "-I", include, "-"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    let text = format!("#include \"dtrace.h\"\n{assertions}");
    cc.stdin
        .take()
        .expect("its input")
        .write_all(text.as_bytes())
        .expect("the program");
    cc.wait().expect("the compiler's verdict").success()
}

#[test]
fn structures_have_the_same_layout() {
    let text = [
        layout!(
            "struct dtrace_probedesc",
            ioctl::ProbeDesc,
            id,
            provider,
            module,
            func,
            name
        ),
        layout!("struct dtrace_repldesc", ioctl::ReplDesc, matching, create),
        layout!("struct dtrace_enable", ioctl::Enable, dof, n_matched),
        layout!(
            "struct dtrace_recdesc",
            ioctl::RecDesc,
            action,
            size,
            offset,
            alignment,
            format,
            arg,
            uarg
        ),
        layout!(
            "struct dtrace_eprobedesc",
            ioctl::EprobeDesc,
            epid,
            probeid,
            uarg,
            size,
            nrecs
        ),
        layout!(
            "struct dtrace_aggdesc",
            ioctl::AggDesc,
            name,
            varid,
            flags,
            id,
            epid,
            size,
            nrecs
        ),
        layout!(
            "struct dtrace_fmtdesc",
            ioctl::FmtDesc,
            string,
            length,
            format
        ),
        layout!(
            "struct dtrace_bufdesc",
            ioctl::BufDesc,
            size,
            cpu,
            errors,
            drops,
            data,
            oldest,
            timestamp
        ),
        layout!(
            "struct dtrace_rechdr",
            ioctl::RecHdr,
            epid,
            timestamp_hi,
            timestamp_lo
        ),
        layout!(
            "struct dtrace_status",
            ioctl::Status,
            dyndrops,
            specdrops,
            errors,
            filled,
            dblerrors,
            killed,
            exiting
        ),
        layout!(
            "struct dtrace_conf",
            ioctl::Conf,
            difversion,
            difintregs,
            diftupregs,
            ctfmodel
        ),
        layout!(
            "struct dtrace_argdesc",
            ioctl::ArgDesc,
            id,
            ndx,
            mapping,
            native,
            xlate
        ),
        layout!(
            "struct dtrace_providerdesc",
            ioctl::ProviderDesc,
            name,
            attr,
            privileges
        ),
        layout!("struct dtrace_reason", ioctl::Reason, text),
        layout!(
            "struct dtrace_dofhelper",
            ioctl::DofHelper,
            module,
            addr,
            dof
        ),
        layout!(
            "struct dtrace_diftype",
            types::DifType,
            kind,
            ckind,
            flags,
            size
        ),
        layout!(
            "struct dtrace_difvar",
            types::DifVar,
            name,
            id,
            kind,
            scope,
            flags,
            ty
        ),
        layout!(
            "struct dtrace_stackhead",
            types::StackHead,
            depth,
            is_user,
            pid,
            strsz
        ),
        layout!("struct dof_hdr", dof::Hdr, ident, loadsz),
        layout!("struct dof_sec", dof::Sec, size),
        layout!("struct dof_probedesc", dof::ProbeDesc, strtab, provider),
    ]
    .concat();
    assert!(compiles(&text));
}

#[test]
fn numbers_are_the_same() {
    let text = [
        value("DTRACEIOC_PROVIDER", ioctl::PROVIDER.into()),
        value("DTRACEIOC_PROBES", ioctl::PROBES.into()),
        value("DTRACEIOC_BUFSNAP", ioctl::BUFSNAP.into()),
        value("DTRACEIOC_PROBEMATCH", ioctl::PROBEMATCH.into()),
        value("DTRACEIOC_ENABLE", ioctl::ENABLE.into()),
        value("DTRACEIOC_AGGSNAP", ioctl::AGGSNAP.into()),
        value("DTRACEIOC_EPROBE", ioctl::EPROBE.into()),
        value("DTRACEIOC_PROBEARG", ioctl::PROBEARG.into()),
        value("DTRACEIOC_CONF", ioctl::CONF.into()),
        value("DTRACEIOC_STATUS", ioctl::STATUS.into()),
        value("DTRACEIOC_GO", ioctl::GO.into()),
        value("DTRACEIOC_STOP", ioctl::STOP.into()),
        value("DTRACEIOC_AGGDESC", ioctl::AGGDESC.into()),
        value("DTRACEIOC_FORMAT", ioctl::FORMAT.into()),
        value("DTRACEIOC_DOFGET", ioctl::DOFGET.into()),
        value("DTRACEIOC_REPLICATE", ioctl::REPLICATE.into()),
        value("DTRACEIOC_REASON", ioctl::REASON.into()),
        value("DTRACEHIOC_ADDDOF", ioctl::HELPER_ADDDOF.into()),
        value("DTRACE_FUNCNAMELEN", limits::FUNCNAMELEN as u64),
        value("DIF_VERSION", dif::DIF_VERSION.into()),
        value("DIF_OP_RET", dif::Op::Ret as u64),
        value("DIF_SUBR_COPYIN", Subr::Copyin as u64),
        value("DIF_VAR_EXECNAME", Var::Execname as u64),
        value("DTRACE_ACTION_PRINTF", Action::Printf as u64),
        value("DTRACEOPT_UNSET", option::UNSET),
    ]
    .concat();
    assert!(compiles(&text));
}

#[test]
fn the_comparison_can_fail() {
    assert!(!compiles(&value("DTRACEIOC_CONF", 1)));
}
