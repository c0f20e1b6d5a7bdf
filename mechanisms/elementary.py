"""exp, log and a cosine that a compiler can vectorise, for kernels: each right to about one unit in the last place."""

from __future__ import annotations

import math

import numpy as np

_LOG2E = 1 / math.log(2)
#: ln 2 in two parts; the first has 32 trailing zeros, so that its small multiples are exact.
_LN2, _LN2_REST = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (1 / math.factorial(k) for k in range(2, 14))
#: fdlibm's e_log.c: (log(1 + f) - log(1 - f)) / s for s = f / (2 + f), up to 2 s.
_L1, _L2, _L3, _L4 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
)
_L5, _L6, _L7 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01
#: The bits of sqrt(1/2): mantissas are taken from there to twice that.
_ROOT_HALF = 0x3FE6A09E667F3BCD
_S3, _S5, _S7, _S9, _S11, _S13, _S15, _S17, _S19, _S21 = ((-1) ** k / math.factorial(2 * k + 1) for k in range(1, 11))
_TURN = 2 * math.pi


def exp(x: float) -> float:
    """Return e^x; 0 below -708, infinity above 709."""
    k = min(max(math.floor(x * _LOG2E + 0.5), -1022.0), 1024.0)
    r = (x - k * _LN2) - k * _LN2_REST
    p = _E10 + r * (_E11 + r * (_E12 + r * _E13))
    p = _E4 + r * (_E5 + r * (_E6 + r * (_E7 + r * (_E8 + r * (_E9 + r * p)))))
    p = 1.0 + r * (1.0 + r * (0.5 + r * (_E3 + r * p)))
    power: float = np.int64((np.int64(k) + 1023) << 52).view(np.float64)
    return 0.0 if x < -708.0 else p * power


def log(x: float) -> float:
    """Return ln x for a positive normal number."""
    bits = np.float64(x).view(np.int64)
    exponent = (bits - _ROOT_HALF) >> 52
    f = np.int64(bits - (exponent << 52)).view(np.float64) - 1.0
    k = np.float64(exponent)
    s = f / (2.0 + f)
    z = s * s
    rest = z * (_L1 + z * (_L2 + z * (_L3 + z * (_L4 + z * (_L5 + z * (_L6 + z * _L7))))))
    half = 0.5 * f * f
    result: float = k * _LN2 - ((half - (s * (half + rest) + k * _LN2_REST)) - f)
    return result


def cos_turns(x: float) -> float:
    """Return cos(2 pi x) for x in [0, 1]."""
    a = _TURN * (abs(x - 0.5) - 0.25)  # the sine of an angle of at most a right one
    z = a * a
    p = _S11 + z * (_S13 + z * (_S15 + z * (_S17 + z * (_S19 + z * _S21))))
    sine: float = a + a * z * (_S3 + z * (_S5 + z * (_S7 + z * (_S9 + z * p))))
    return sine
