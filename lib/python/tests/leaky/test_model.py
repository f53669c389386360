"""Three tests, of which one leaks: what the pytest plugin says of them is tested in internal/lab/e2e."""

import pytest
import ttnn

kept = []


@pytest.fixture
def device():
    device = ttnn.open_device(device_id=0)
    yield device
    ttnn.close_device(device)


def tensor(device):
    return ttnn.empty([1, 1, 1024, 1024], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, ttnn.DRAM_MEMORY_CONFIG)


def test_frees(device):
    ttnn.deallocate(tensor(device))


def test_leaks(device):
    kept.append(tensor(device))


def test_nothing():
    pass
