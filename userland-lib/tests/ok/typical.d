/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN /execname == "bash" && arg0 > 2/ { self->ts = timestamp; self->fd = arg0; }
BEGIN /self->ts/ { @lat[execname, self->fd] = quantize(timestamp - self->ts); self->ts = 0; }
BEGIN { i = 0; i++; i += 3; j = i * 2 + 1; trace(i > 3 ? j : i); x["a", 1] += 5; }
BEGIN { this->s = strjoin("a", strjoin("b", "a")); printf("%s %d\n", this->s, strlen(this->s)); }
BEGIN /pid == 1 || !(uid == 0 && gid == 0)/ { trace(arg0 == 0 ? "zero" : arg0 < 0 ? "neg" : "pos"); }
BEGIN { self->x++; this->y = (char)arg0; this->z = (uint8_t)arg1; trace(this->y + this->z); }
BEGIN { @[arg0 & 0xff] = sum(arg1 >> 3); trace(x["a", 2] != 0); trace(strlen(execname) > 3 && probefunc == "x"); }
struct s { int a; short b[4]; unsigned bf : 3; unsigned bg : 5; struct s *next; };
BEGIN { this->p = (struct s *)arg0; trace(this->p->next->b[2]); trace(this->p->bg); trace(this->p->next->next->a); }
struct s v; 
BEGIN { v.a = 3; v.bg = 4; v.b[1]++; trace(v.bf + v.a); }
BEGIN { printf("%d %s", *(int *)copyin(arg0, 4), copyinstr(arg1)); }
