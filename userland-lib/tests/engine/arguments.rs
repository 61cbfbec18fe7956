// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The types of probe arguments.

use expect_test::expect;

#[test]
fn the_address_that_a_function_returns_to_is_whole() {
    let text = super::text::run(
        &[("quiet", None)],
        &[
            r#"fbt::vfs_read:return { printf("%x %d %d\n", args[0], args[0] == arg0, sizeof (args[0])); }"#,
        ],
        &[(0, "fbt::vfs_read:return", &[0xffff_fffe_1234_5678, 5])],
    );
    expect![[r#"
        |fffffffe12345678 1 8$
    "#]]
    .assert_eq(&text);
}
