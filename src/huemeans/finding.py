"""What one check found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What one check found, in words."""

    check: str
    passed: bool
    words: str
