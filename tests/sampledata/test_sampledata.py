"""The demo's data: real images, dealt without overlap, drifted in ways that change pixels and keep labels."""

import numpy as np
import pytest

from sampledata import drift
from sampledata.images import SOURCES, Images, deal


@pytest.fixture(scope="module", params=SOURCES)
def images(request: pytest.FixtureRequest) -> Images:
    return SOURCES[request.param]()


def test_pixels_are_single_channel_floats_between_0_and_1_with_labels_of_ten_classes(images: Images) -> None:
    assert images.x.dtype == np.float32
    assert images.x.ndim == 4
    assert images.x.shape[1] == 1
    assert images.x.min() >= 0
    assert images.x.max() <= 1
    assert images.x.std() > 0.1
    assert sorted(set(images.y.tolist())) == list(range(10))


def test_no_image_is_dealt_twice(images: Images) -> None:
    numbered = Images(np.arange(len(images), dtype=np.float32).reshape(-1, 1, 1, 1), images.y)
    hands = deal(numbered, [500, 300, 200], seed=3)

    dealt = np.concatenate([hand.x.ravel() for hand in hands])
    assert len(dealt) == 1000
    assert len(set(dealt.tolist())) == 1000


def test_asking_for_more_images_than_there_are_is_refused(images: Images) -> None:
    with pytest.raises(ValueError, match="ask for fewer"):
        deal(images, [len(images), 1], seed=0)


@pytest.mark.parametrize("name", [name for name in drift.DRIFTS if name != "clean"])
def test_drift_changes_the_pixels_reproducibly_and_keeps_labels_and_range(images: Images, name: str) -> None:
    drifted, again = drift.apply(name, images, seed=1), drift.apply(name, images, seed=1)

    assert np.abs(drifted.x - images.x).mean() > 0.02
    np.testing.assert_array_equal(drifted.x, again.x)
    np.testing.assert_array_equal(drifted.y, images.y)
    assert drifted.x.min() >= 0
    assert drifted.x.max() <= 1


def test_an_unknown_drift_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="rotated, inverted, fogged"):
        drift.apply("melted", Images(np.zeros((1, 1, 8, 8), np.float32), np.zeros(1, np.int32)), seed=0)
