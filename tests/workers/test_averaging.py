from __future__ import annotations

import torch
from timm.utils.model_ema import ModelEmaV3
from torch import nn

from workers.averaging import Average


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 3))


def test_the_average_has_the_same_bits_as_timms_also_after_weights_were_loaded() -> None:
    model = network()
    ours, timms = (kind(model, decay=0.9, use_warmup=True) for kind in (Average, ModelEmaV3))
    for step in range(1, 7):
        model(torch.randn(5, 1, 8, 8)).sum().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(0.1 * parameter.grad)
        if step == 4:
            stored = {name: value + 1 for name, value in model.state_dict().items()}
            model.load_state_dict(stored)
            for average in (ours, timms):
                average.module.load_state_dict(stored)
        ours.update(model, step=step)
        timms.update(model, step=step)
        expected, found = timms.module.state_dict(), ours.module.state_dict()
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert found["1.num_batches_tracked"] > 0
    assert not torch.equal(found["3.weight"], model.state_dict()["3.weight"])
