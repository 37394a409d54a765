/* Powers of 2 and logarithms in a form that the compiler can vectorise. */
#ifndef SCORETHRESH_EXP2_H
#define SCORETHRESH_EXP2_H

#include <string.h>

#include "loops.h"

/* Returns 2^x for |x| <= 1020, with a relative error of 7e-15: a Taylor polynomial on |f| <= 1/2, with coefficients
   log(2)^j / j!. */
INLINE double power_of_2(double x) {
    /* Added to a double, this leaves the nearest integer in its last bits. */
    const double round = 6755399441055744.0;
    const double shifted = x + round;
    const double f = x - (shifted - round), f2 = f * f, f4 = f2 * f2;
    const double low = (0.05550410866482158 * f + 0.24022650695910072) * f2 + (0.6931471805599453 * f + 1.0);
    const double middle = (1.5252733804059841e-05 * f + 0.0001540353039338161) * f2 +
                          (0.0013333558146428443 * f + 0.009618129107628477);
    const double high = (4.4455382718708116e-10 * f + 7.0549116208011234e-09) * f2 +
                        (1.0178086009239699e-07 * f + 1.3215486790144309e-06);
    uint64_t bits;
    double scale;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&scale, &bits, sizeof scale);
    return ((high * f4 + middle) * f4 + low) * scale;
}

/* Returns log(x) for a normal x > 0, with a relative error of 4e-16, or an absolute one of 2e-16: twice the series of
   artanh(s), s = (m - 1) / (m + 1), where x = 2^e m with m from sqrt(1/2) to sqrt(2). For others it is some finite
   number. */
INLINE double logarithm(double x) {
    const double root = 0.7071067811865476, whole = 4503599627370496.0; /* 2^52 holds integers in its last bits */
    uint64_t bits, least_bits, exponent;
    double m, e;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&least_bits, &root, sizeof least_bits);
    memcpy(&exponent, &whole, sizeof exponent);
    bits -= least_bits;
    exponent |= ((bits >> 52) + 2048) & 4095;
    bits = (bits & 0xFFFFFFFFFFFFFu) + least_bits;
    memcpy(&m, &bits, sizeof m);
    memcpy(&e, &exponent, sizeof e);
    const double s = (m - 1) / (m + 1), t = s * s, t2 = t * t, t4 = t2 * t2;
    const double low = (t * (1.0 / 7) + 1.0 / 5) * t2 + t * (1.0 / 3);
    const double middle = (t * (1.0 / 15) + 1.0 / 13) * t2 + (t * (1.0 / 11) + 1.0 / 9);
    const double high = (t * (1.0 / 21) + 1.0 / 19) * t + 1.0 / 17;
    return (e - (whole + 2048)) * 0.6931471805599453 + 2 * s * (((high * t4 + middle) * t4 + low) + 1);
}

#endif
