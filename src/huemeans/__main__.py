"""Run as a module: ``python -m huemeans``."""

from huemeans.cli import main

main()
