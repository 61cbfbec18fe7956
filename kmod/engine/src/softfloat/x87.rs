// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Results of a processor's x87 unit, for whose format Rust has no type: random operands, many of
//! them corner cases.

use super::{add, compare, div, mul, sub, Extended};

/// Sign and exponent; significand.
type Bits = (u16, u64);

/// Two numbers, and their sum, difference, product and quotient.
#[rustfmt::skip]
const COMPUTED: &[[Bits; 6]] = &[
    [(0xc00b, 0x9c9e_a6ff_0f31_a510), (0xc00c, 0xaa30_2a04_9f8d_dd54), (0xc00c, 0xf87f_7d84_2726_afdc), (0x400b, 0xb7c1_ad0a_2fea_1598), (0x4018, 0xd03d_a4b3_16cf_33d1), (0x3ffd, 0xeb97_1515_2e08_c315)],
    [(0xbfe6, 0x8000_0000_0000_0000), (0xc020, 0xffff_ffff_ffff_ffff), (0xc021, 0x8000_0000_0000_0010), (0x4020, 0xffff_ffff_ffff_ffdf), (0x4007, 0xffff_ffff_ffff_ffff), (0x3fc4, 0x8000_0000_0000_0001)],
    [(0xbff3, 0xffff_ffff_ffff_ffff), (0x3fd7, 0x8000_0000_0000_0000), (0xbff3, 0xffff_fff7_ffff_ffff), (0xbff4, 0x8000_0004_0000_0000), (0xbfcb, 0xffff_ffff_ffff_ffff), (0xc01b, 0xffff_ffff_ffff_ffff)],
    [(0x3fe4, 0xf5a1_5234_76de_9041), (0x3fe2, 0x8000_0000_0000_0000), (0x3fe5, 0x8ad0_a91a_3b6f_4820), (0x3fe4, 0xd5a1_5234_76de_9041), (0x3fc7, 0xf5a1_5234_76de_9041), (0x4001, 0xf5a1_5234_76de_9041)],
    [(0xc007, 0x8000_0000_0000_0000), (0x4006, 0x8000_0000_0000_0000), (0xc006, 0x8000_0000_0000_0000), (0xc007, 0xc000_0000_0000_0000), (0xc00e, 0x8000_0000_0000_0000), (0xc000, 0x8000_0000_0000_0000)],
    [(0x4019, 0xc136_c9a1_cf3c_1342), (0x4000, 0xffff_ffff_ffff_ffff), (0x4019, 0xc136_ca21_cf3c_1342), (0x4019, 0xc136_c921_cf3c_1342), (0x401b, 0xc136_c9a1_cf3c_1341), (0x4017, 0xc136_c9a1_cf3c_1343)],
    [(0x3fff, 0x8000_0000_0000_0000), (0x401f, 0xf0e5_d38b_c235_5ba3), (0x401f, 0xf0e5_d38c_4235_5ba3), (0xc01f, 0xf0e5_d38b_4235_5ba3), (0x401f, 0xf0e5_d38b_c235_5ba3), (0x3fde, 0x8806_4661_b772_2d1a)],
    [(0x3ff6, 0xffff_ffff_ffff_ffff), (0x3fc0, 0x8000_0000_0000_0000), (0x3ff7, 0x8000_0000_0000_0100), (0x3ff6, 0xffff_ffff_ffff_fdff), (0x3fb7, 0xffff_ffff_ffff_ffff), (0x4035, 0xffff_ffff_ffff_ffff)],
    [(0xffff, 0x8000_0000_0000_0000), (0xffff, 0x8000_0000_0000_0000), (0xffff, 0x8000_0000_0000_0000), (0xffff, 0xc000_0000_0000_0000), (0x7fff, 0x8000_0000_0000_0000), (0xffff, 0xc000_0000_0000_0000)],
    [(0x4029, 0xe29a_dfd7_c2e5_7d43), (0xc000, 0xffff_ffff_ffff_ffff), (0x4029, 0xe29a_dfd7_c265_7d43), (0x4029, 0xe29a_dfd7_c365_7d43), (0xc02b, 0xe29a_dfd7_c2e5_7d42), (0xc027, 0xe29a_dfd7_c2e5_7d44)],
    [(0x3fe0, 0xffff_ffff_ffff_ffff), (0x3ffc, 0xffff_ffff_ffff_ffff), (0x3ffd, 0x8000_0007_ffff_ffff), (0xbffc, 0xffff_ffef_ffff_ffff), (0x3fde, 0xffff_ffff_ffff_fffe), (0x3fe3, 0x8000_0000_0000_0000)],
    [(0x401d, 0xffff_ffff_ffff_ffff), (0xc004, 0x8000_0000_0000_0000), (0x401d, 0xffff_ffbf_ffff_ffff), (0x401e, 0x8000_0020_0000_0000), (0xc022, 0xffff_ffff_ffff_ffff), (0xc018, 0xffff_ffff_ffff_ffff)],
    [(0xc029, 0x8000_0000_0000_0000), (0xbfea, 0xfe7e_74c1_1acc_923e), (0xc029, 0x8000_0000_0000_0002), (0xc028, 0xffff_ffff_ffff_fffc), (0x4014, 0xfe7e_74c1_1acc_923e), (0x403d, 0x80c1_e9a9_53c3_d4db)],
    [(0x4014, 0xd77e_f73e_6380_5ce4), (0xbfe7, 0xffff_ffff_ffff_ffff), (0x4014, 0xd77e_f73e_6378_5ce4), (0x4014, 0xd77e_f73e_6388_5ce4), (0xbffd, 0xd77e_f73e_6380_5ce3), (0xc02b, 0xd77e_f73e_6380_5ce5)],
    [(0xc015, 0x8b6b_554d_9322_6839), (0xc02d, 0x958a_a080_a7b9_b6d2), (0xc02d, 0x958a_a10c_130f_0465), (0x402d, 0x958a_9ff5_3c64_693f), (0x4043, 0xa2e1_efd6_918f_4577), (0x3fe6, 0xeeab_f759_057e_cfa0)],
    [(0x4040, 0xdc00_0b6e_c6d5_9a45), (0xc00f, 0xa328_439c_5c3e_eb99), (0x4040, 0xdc00_0b6e_c6d5_48b1), (0x4040, 0xdc00_0b6e_c6d5_ebd9), (0xc051, 0x8c36_a163_b434_1ebb), (0xc030, 0xac98_2642_3be9_8755)],
    [(0xbfe4, 0xffff_ffff_ffff_ffff), (0x2d87, 0xcff7_2a94_1b63_eab9), (0xbfe4, 0xffff_ffff_ffff_ffff), (0xbfe4, 0xffff_ffff_ffff_ffff), (0xad6d, 0xcff7_2a94_1b63_eab8), (0xd25c, 0x9d90_89b1_3180_663c)],
    [(0x3ffd, 0xf7b0_2199_184f_ad69), (0x820d, 0x8000_0000_0000_0000), (0x3ffd, 0xf7b0_2199_184f_ad69), (0x3ffd, 0xf7b0_2199_184f_ad69), (0x820b, 0xf7b0_2199_184f_ad69), (0xfdef, 0xf7b0_2199_184f_ad69)],
    [(0x7ffe, 0xffff_ffff_ffff_ffff), (0xbffa, 0x8000_0000_0000_0000), (0x7ffe, 0xffff_ffff_ffff_ffff), (0x7ffe, 0xffff_ffff_ffff_ffff), (0xfff9, 0xffff_ffff_ffff_ffff), (0xffff, 0x8000_0000_0000_0000)],
    [(0x3ffa, 0x8000_0000_0000_0000), (0xd29f, 0xffff_ffff_ffff_ffff), (0xd29f, 0xffff_ffff_ffff_ffff), (0x529f, 0xffff_ffff_ffff_ffff), (0xd29a, 0xffff_ffff_ffff_ffff), (0xad59, 0x8000_0000_0000_0001)],
    [(0x0002, 0xf12b_247d_941e_8336), (0x685f, 0xf026_5ad0_25f1_abb1), (0x685f, 0xf026_5ad0_25f1_abb1), (0xe85f, 0xf026_5ad0_25f1_abb1), (0x2863, 0xe23c_942a_6721_4b47), (0x0000, 0x0000_0000_0000_0000)],
    [(0x95d7, 0x94b9_28fe_bccf_51e5), (0x4021, 0xffff_ffff_ffff_ffff), (0x4021, 0xffff_ffff_ffff_ffff), (0xc021, 0xffff_ffff_ffff_ffff), (0x95fa, 0x94b9_28fe_bccf_51e4), (0x95b4, 0x94b9_28fe_bccf_51e6)],
    [(0x6d62, 0xaa08_c116_9c00_619e), (0xc003, 0xaf8d_2e14_647c_4261), (0x6d62, 0xaa08_c116_9c00_619e), (0x6d62, 0xaa08_c116_9c00_619e), (0xed66, 0xe933_82d7_d86e_90fc), (0xed5d, 0xf7f4_504d_22a1_7a0c)],
    [(0xbdda, 0xffff_ffff_ffff_ffff), (0x6aec, 0xa274_cde1_dd1c_ca1e), (0x6aec, 0xa274_cde1_dd1c_ca1e), (0xeaec, 0xa274_cde1_dd1c_ca1e), (0xe8c8, 0xa274_cde1_dd1c_ca1d), (0x92ed, 0xc9b4_1990_2d57_807c)],
];

fn number((high, significand): Bits) -> Extended {
    Extended { high, significand }
}

#[test]
fn extended_numbers_are_computed_as_by_the_unit() {
    for row in COMPUTED {
        let [a, b, results @ ..] = row.map(number);
        let ours = [add(a, b), sub(a, b), mul(a, b), div(a, b)];
        for (ours, expected) in ours.into_iter().zip(results) {
            let no_number = |n| compare(n, n).is_none();
            let same = ours == expected || no_number(ours) && no_number(expected);
            assert!(same, "{a:x?} {b:x?}: {ours:x?} is not {expected:x?}");
        }
    }
}
