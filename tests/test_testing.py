"""Seeded noise: the same from its start each time, marked, and reachable in one way only."""

import threading

import numpy as np
import pytest

from huemeans import ColoredGaussian, InvalidArgument
from huemeans.entropy import OperatingSystem, open_source
from huemeans.testing import seeded_noise

NOISE = ColoredGaussian([[1.0, 0.3], [0.3, 2.0]])


def release():
    """Release the origin for one small difference."""
    return NOISE.release([0.0, 0.0], [[0.1, 0.0]])


def test_each_release_draws_the_stream_from_its_start():
    """Two releases in one block, and one in another block of the same seed, are equal."""
    with seeded_noise(3):
        first, second = release(), release()
    with seeded_noise(3):
        third = release()
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)


def test_other_seeds_and_no_seed_give_other_noise():
    """Control: another seed differs, and outside the block every release is fresh."""
    with seeded_noise(3):
        first = release()
    with seeded_noise(4):
        assert (release() != first).all()
    assert (release() != release()).all()


def test_what_seeded_noise_touches_is_marked():
    """The mark survives arithmetic and is absent outside the block."""
    with seeded_noise(3):
        marked = [release(), NOISE.draw(2)]
    for array in (*marked, marked[0] * 2 + 1, marked[1][0]):
        assert repr(array).startswith("NOT PRIVATE")
    assert "NOT PRIVATE" not in repr(release())


def test_numpys_global_seed_never_seeds_noise():
    """np.random.seed has no effect on a release."""
    np.random.seed(0)  # noqa: NPY002
    first = release()
    np.random.seed(0)  # noqa: NPY002
    assert (release() != first).all()


def test_the_seed_ends_with_the_block_even_after_an_error():
    """Nesting restores the outer seed; leaving restores the operating system."""
    with seeded_noise(1):
        outer = release()
        with pytest.raises(RuntimeError), seeded_noise(2):
            raise RuntimeError
        np.testing.assert_array_equal(outer, release())
    assert isinstance(open_source(), OperatingSystem)


def test_another_thread_is_not_seeded():
    """The seed belongs to the context that asked for it."""
    found = []
    with seeded_noise(1):
        thread = threading.Thread(target=lambda: found.append(open_source().seeded))
        thread.start()
        thread.join()
    assert found == [False]


@pytest.mark.parametrize("seed", [-1, 1.0, None, "x"])
def test_bad_seeds_are_refused(seed):
    """The message names seed and its value."""
    with pytest.raises(InvalidArgument, match=r"^seed="), seeded_noise(seed):
        pass
