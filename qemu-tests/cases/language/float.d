/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q -c write-floats
 * Floating-point numbers of a process, computed with in the kernel, printed and aggregated: see write-floats.c.
 */

struct sample {
	double d;
	float f;
	int n;
	long double l;
};

syscall::write:entry
/pid == $target && arg2 == sizeof (struct sample)/
{
	this->s = (struct sample *)copyin(arg1, sizeof (struct sample));
	this->n = *(int *)copyin(arg1 + 12, 4);
	printf("%d: %g %.3f %Lg |", this->n, this->s->d, this->s->f, this->s->l);
	printf(" %.17g %.9g %d", this->s->d * 3 - this->n, this->s->f / 3, this->s->l * this->n == 1);
	printf(" %s\n", this->s->d < this->s->f ? "less" : "not less");
	@sum = sum(this->s->d);
	@mean = avg(this->s->f);
	@low = min(-this->s->d);
	@high = max(this->s->l);
	@deviation = stddev(this->s->d * 10);
	@keyed[this->s->f > 1, this->s->f] = count();
	@steps = lquantize(this->s->d * 10, 0, 10, 1);
	total += this->s->l;
}

syscall::write:entry
/pid == $target && arg2 == sizeof (struct sample) && *(double *)copyin(arg1, 8) > 0.35/
{
	trace(this->s->d);
	printf("\n");
}

END
{
	printf("%.6Lf\n", total);
	printa("%@.3f %@g %@g %@g %@.3e\n", @sum, @mean, @low, @high, @deviation);
	printa("%d %g %@d\n", @keyed);
}
