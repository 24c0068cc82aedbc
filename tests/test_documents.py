"""The pages of the documentation run as they stand."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_session_of_a_page_gives_what_it_shows(page):
    """One after the other, as a reader would."""
    sessions = re.findall(r"```pycon\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    examples = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(examples)
    assert runner.tries == len(examples.examples)
    assert not runner.failures
    assert ("pycon" in page.read_text(encoding="utf-8")) == bool(sessions)
