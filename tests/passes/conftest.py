"""`pytest tests/passes --update-golden` rewrites the expected halves of tests/golden/*.hlo."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite expected texts")


@pytest.fixture
def update_golden(request):
    # The default serves runs that collect this folder without having named it.
    return request.config.getoption("--update-golden", default=False)
