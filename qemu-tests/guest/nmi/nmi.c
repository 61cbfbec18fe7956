// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * Sends NMIs, because an emulated machine has no performance counters that would: writing a number
 * to the parameter `send` interrupts all other CPUs that often. A handler claims each of these
 * NMIs, so that the kernel does not report them as unknown.
 */

#include <asm/apic.h>
#include <asm/msr.h>
#include <asm/nmi.h>
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

/* The time between two NMIs, in microseconds. */
#define PAUSE 1000

static atomic_t expected;

static int handle(unsigned int kind, struct pt_regs *regs)
{
	return atomic_dec_if_positive(&expected) >= 0 ? NMI_HANDLED : NMI_DONE;
}

/* To all CPUs but this one. (The kernel's own function for this is not exported to modules.) */
static void send_one(void)
{
	u32 order = APIC_DEST_ALLBUT | APIC_DM_NMI | APIC_INT_ASSERT;

	if (x2apic_mode)
		wrmsr(APIC_BASE_MSR + (APIC_ICR >> 4), order, 0);
	else
		writel(order, (void __iomem *)(APIC_BASE + APIC_ICR));
}

static int send(const char *text, const struct kernel_param *param)
{
	unsigned int n;
	int error = kstrtouint(text, 0, &n);

	if (error)
		return error;
	while (n--) {
		preempt_disable();
		atomic_add(num_online_cpus() - 1, &expected);
		send_one();
		preempt_enable();
		usleep_range(PAUSE, 2 * PAUSE);
	}
	return 0;
}

static const struct kernel_param_ops ops = { .set = send };

module_param_cb(send, &ops, NULL, 0200);

static int __init nmi_init(void)
{
	return register_nmi_handler(NMI_LOCAL, handle, 0, "dtrace-test");
}

static void __exit nmi_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, "dtrace-test");
}

module_init(nmi_init);
module_exit(nmi_exit);
MODULE_DESCRIPTION("Sends NMIs");
MODULE_LICENSE("GPL");
