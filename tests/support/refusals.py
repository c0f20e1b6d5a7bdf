"""Tests of bad input, as tables."""

import pytest


def refusals(*cases):
    """Return a test of pairs of a call and what the ValueError says that it raises, as a regular expression."""

    @pytest.mark.parametrize(("call", "message"), cases)
    def test(call, message):
        with pytest.raises(ValueError, match=message):
            call()

    return test
