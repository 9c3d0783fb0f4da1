"""Values that no field expects."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

TEXTS = (
    "", " ", "\t", "\n", "a\nb", "\0", "x\0y", "~", "~nosuchuser", "~nosuchuser/model", "/", "//", ".", "..", "../..",
    "/dev/null", "/dev/zero", "/dev/fd/0", "/proc/self/mem", "/proc/self/environ", "/etc", "/srv/secret", "x" * 256, "x" * 5000,
    "/".join(["d"] * 3000), "ü" * 200, "x" * 200_000, "\u202eevil", "\u200b", "<script>alert(1)</script>", "[a](javascript:x)",
    "'", '"', "`", "$x$", "{}", "%s%n", "%00", "{0}", "a,b", ",", ",,", "=", "==", "a=", "=b", "lam=1,,2", "none", "None", "null",
    "nan", "NaN", "inf", "-inf", "1e309", "-1e309", "1e-400", "9" * 400, "-" + "9" * 400, "9" * 5000, "0x10", "1_000", "١٢", "½",
    "1.5", "-1", "0", "1", "2", "3.0", "1e3", "−1", "true", "yes", "0-4", "4-0", "0-99999", "0..4", "[]", "[1]", "{}", "()",
    "[" * 5000, "😀", "é", "e\u0301", "\ufeff", "-", "--", "--json", "-h=", "@", "a@b", "a@", "org/name", "org/name@main",
    "a/b/c", "http://x", "file:///etc/passwd", "run:", "run:x", "run:\0", "run:../..", "demo/", "demo/tiny-bert/", "demo/nothing",
)  # fmt: skip
"""By kind: emptiness, control characters, paths that are none, lengths, markup, syntax, numbers, other alphabets, half names."""

NUMBERS = (
    *(text for text in TEXTS if any(digit in text for digit in "0123456789") and len(text) < 6000),
    "nan", "inf", "-inf", "1e308", "4096", "2147483647", "2147483648", "9223372036854775808", "0.5", "1e-8",
)  # fmt: skip

SURROGATES = ("\udcff", "x\udc80y", "/tmp/\udcfe", "\ud800")
"""What arguments that are not UTF-8 become; an address cannot hold them."""


def one_of(values: Sequence[str]) -> st.SearchStrategy[str]:
    """Like `st.sampled_from`, whose own description would repeat every value, some of which are long."""
    return st.integers(0, len(values) - 1).map(values.__getitem__)


anything = st.one_of(one_of(TEXTS), one_of(NUMBERS), st.text(max_size=30))
"""A value for any field."""


def near(*good: str) -> st.SearchStrategy[str]:
    """A value that fits more often than not, or nearly does, or does not at all."""
    fitting = one_of(good) if good else anything
    bent = st.tuples(fitting, anything).map(lambda pair: pair[0] + pair[1])
    return st.one_of(fitting, fitting, bent, anything)
