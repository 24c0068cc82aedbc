"""The README runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_every_python_block_of_the_readme_runs(capsys):
    """One after the other, as a reader would; the first prints a guarantee."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)  # noqa: S102  # our own text
    assert capsys.readouterr().out.startswith("(epsilon=1, delta=1e-06)-differential privacy")
