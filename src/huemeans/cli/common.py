"""What several commands share: printing, configuration, public facts about columns."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from huemeans.errors import InvalidArgument

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
COUNT = click.IntRange(1)
EPSILON = click.FloatRange(0, min_open=True)
DELTA = click.FloatRange(0, 1, min_open=True, max_open=True)

epsilon_option = click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="0.1 is strong, 1 is common, 10 is weak.",
)
delta_option = click.option(
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=1e-6,
    show_default=True,
    help="Below one over the number of people.",
)
neighbors_option = click.option(
    "--neighbors", type=click.Choice(["add-remove", "replace-one"]), default="add-remove", show_default=True
)


_ALIASES = {"json": "as_json"}


def say(words: str) -> None:
    """Talk to the person at the terminal."""
    click.echo(words, err=True)


def give(value: Any, *, as_json: bool, text: str) -> None:
    """Print a result."""
    click.echo(json.dumps(value, indent=1, sort_keys=True) if as_json else text)


def facts(path: str | None) -> tuple[dict[str, list[float]], dict[str, tuple[str, ...]]]:
    """Read public facts from TOML: ``column = [lower, upper]``, or ``column = ["word", ...]``."""
    if path is None:
        return {}, {}
    given = read_toml(path)
    bounds: dict[str, list[float]] = {}
    words: dict[str, tuple[str, ...]] = {}
    for name, value in given.items():
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            words[name] = tuple(value)
        elif isinstance(value, list) and len(value) == 2 and all(_is_number(one) for one in value):  # noqa: PLR2004
            bounds[name] = [float(one) for one in value]
        else:
            raise InvalidArgument(
                f"{path}: {name} is not valid: expected [lower, upper] or a list of words. "
                'Write income = [0, 250] or status = ["single", "married"].'
            )
    return bounds, words


def read_toml(path: str) -> Mapping[str, Any]:
    """Read a TOML file, or say what is wrong with it."""
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"{path} is no TOML: {error}.") from None
    except UnicodeDecodeError:
        raise InvalidArgument(f"{path} is no TOML: it is no text in UTF-8.") from None
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}.") from None


def configured(context: click.Context, _: click.Parameter, path: str | None) -> str | None:
    """Take defaults for the flags of a command from a TOML file; flags go over it."""
    if path is None:
        return None
    given = {_ALIASES.get(name, name.replace("-", "_")): value for name, value in read_toml(path).items()}
    names = {parameter.name: parameter for parameter in context.command.params}
    unknown = sorted(set(given) - set(names) | {"config", "data"} & set(given))
    if unknown:
        raise click.UsageError(f"{path} sets {unknown}, which 'huemeans {context.info_name}' does not have.")
    context.default_map = {name: _told(names[name], value) for name, value in given.items()}
    return path


def _told(parameter: click.Parameter, value: Any) -> Any:
    """Return a setting as its flag would be given, or say that it is of the wrong kind."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        right = isinstance(value, bool)
    elif isinstance(parameter.type, click.types.FloatParamType | click.types.IntParamType):
        whole = isinstance(parameter.type, click.types.IntParamType)
        right = _is_number(value) and not (whole and isinstance(value, float))
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        right, value = True, ",".join(value)
    else:
        right = isinstance(value, str) or (parameter.name == "clusters" and type(value) is int)
    if not right:
        raise click.UsageError(f"the setting {parameter.name} = {value!r} is of the wrong kind.")
    return value


config_option = click.option(
    "--config",
    type=click.Path(dir_okay=False),
    callback=configured,
    is_eager=True,
    help="A TOML file with defaults for these flags.",
)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
