"""Just enough SVG: elements with escaped attributes and text, and round axis ticks."""

import math
from html import escape
from typing import Final

_STEPS: Final = (1, 2, 2.5, 5, 10)
_WANTED: Final = 5


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """Return an element; ``_`` in attribute names stands for ``-``, and a last ``_`` for nothing."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_plain(value), quote=True)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{pairs}>{content}</{name}>" if content else f"<{name}{pairs}/>"


def text(words: str, x: float, y: float, **attributes: object) -> str:
    """Return a text element."""
    return element("text", escape(words), **({"x": x, "y": y} | attributes))


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> str:
    """Return a line."""
    return element("line", **({"x1": x1, "y1": y1, "x2": x2, "y2": y2} | attributes))


def figure(content: str, width: float, height: float, label: str) -> str:
    """Return a whole picture that scales with the page and says what it is to those who cannot see it."""
    return element(
        "svg",
        element("title", escape(label)) + content,
        viewBox=f"0 0 {_plain(width)} {_plain(height)}",
        role="img",
        aria_label=label,
        xmlns="http://www.w3.org/2000/svg",
    )


def ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between two."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    rough = span / _WANTED
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in _STEPS if power * factor >= rough)
    first = math.ceil(low / step)
    return [step * at for at in range(first, first + 2 * _WANTED) if step * at <= high + 1e-9 * span]


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
