# SPDX-License-Identifier: BSD-3-Clause
"""A training whose batches and validations executors make: what comes must be what comes in place."""

import os
import sys
import warnings

import torch

sys.path.insert(0, os.path.dirname(__file__))
import offpath
import torch_pictures
from offpath.api.failures import ArgumentError
from offpath.torch import BestCheckpoint, DataLoader, EarlyStopping, SampleError, Seeded, Validation


def batches(loader):
    torch.manual_seed(3)
    return [batch for _ in range(2) for batch in loader]


def equal(left, right):
    assert len(left) == len(right)
    for one, other in zip(left, right):
        assert all(torch.equal(*pair) for pair in zip(one, other))


def check_batches():
    """The same from executors, in place, and from torch's loader, the last one shorter."""
    pictures = torch_pictures.Pictures(50)
    made = batches(DataLoader(pictures, 8, shuffle=True, num_workers=2, seed=5))
    equal(made, batches(DataLoader(pictures, 8, shuffle=True, seed=5, on="host")))
    torch.manual_seed(3)
    seeded, wanted = Seeded(pictures, 5), []
    for seeded.epoch in range(2):
        wanted += list(torch.utils.data.DataLoader(seeded, 8, shuffle=True))
    equal(made, wanted)
    assert not torch.equal(made[0][0], batches(DataLoader(pictures, 8, shuffle=True, seed=6))[0][0])
    single = [picture for picture, _ in DataLoader(pictures, batch_size=None, prefetch=1)]
    assert single[3].shape == (3, 8, 8)


def check_changes():
    """Of the data set between epochs: executors make, and validate, what this process would."""
    made, results = [], []
    for place in ("service", "host"):
        pictures, made_here = torch_pictures.Pictures(20), []
        loader = DataLoader(pictures, 8, seed=5, on=place)
        validation = Validation(torch_pictures.model(), torch_pictures.brightness, pictures, on=place)
        for pictures.made in (0, 0, 300):
            made_here += loader
            validation.begin()
        made.append(made_here)
        results.append(validation.finish())
    equal(*made)
    assert results[0] == results[1] and results[0][1] + 100 < results[0][2], results


def check_bad_samples():
    for bad, error, words in (
        ("raise", SampleError, "sample 11: ValueError: no such picture"),
        ("crash", SampleError, "sample 11 ends the process"),
    ):
        seen = 0
        try:
            for _ in DataLoader(torch_pictures.Pictures(30, (bad, 11)), 4):
                seen += 1
        except error as said:
            assert words in str(said), said
        assert seen == 2, f"{seen} batches before the bad one"
    try:
        list(DataLoader(torch_pictures.Pictures(30, ("state", 0)), 4))
    except ArgumentError as said:
        assert "sample 0 differs" in str(said)
    else:
        raise AssertionError("a state went unseen")


def check_loss_of_the_service():
    """In mid-epoch: the epoch ends with the same batches, and so does a validation."""
    pictures, model = torch_pictures.Pictures(50), torch_pictures.model()
    wanted = batches(DataLoader(pictures, 8, seed=5, on="host"))
    validation = Validation(model, torch_pictures.evaluate, torch_pictures.Pictures(20))
    validation.begin()
    found = []
    loader = DataLoader(pictures, 8, seed=5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for batch in (one for _ in range(2) for one in loader):
            found.append(batch)
            if len(found) == 2:
                offpath.task(torch_pictures.end_the_service)
        validation.begin()
    (warning,) = [str(one.message) for one in caught if "offpath" in str(one.message)]
    assert "lost" in warning and "This process makes batches and validates." in warning, warning
    equal(found, wanted)
    in_place = Validation(model, torch_pictures.evaluate, torch_pictures.Pictures(20), on="host")
    for _ in range(2):
        in_place.begin()
    assert validation.finish() == in_place.finish()


def trained(on, folder):
    """Losses, validations, and whether it was stopped."""
    model = torch_pictures.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    best = os.path.join(folder, f"best-{on}")
    validation = Validation(
        model, torch_pictures.evaluate, torch_pictures.Pictures(20), on=on,
        on_result=[EarlyStopping(1, "wrong"), BestCheckpoint(best, "wrong")],
    )  # fmt: skip
    loader, losses = DataLoader(torch_pictures.Pictures(40), 8, on=on, shuffle=True), []
    torch.manual_seed(1)
    for _ in range(4):
        model.train()
        for pictures, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(pictures), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        validation.begin()
    return losses, validation.finish(), validation.stop, torch.load(best)


def check_training(folder):
    here, there = trained("host", folder), trained("service", folder)
    assert here[:3] == there[:3], (here[:3], there[:3])
    assert all(torch.equal(here[3][name], there[3][name]) for name in here[3])
    assert len(here[0]) == 20 and len(here[1]) == 4


if __name__ == "__main__":
    torch.set_num_threads(1)
    check_batches()
    if not sys.argv[2:]:
        check_changes()
        check_bad_samples()
        check_training(sys.argv[1])
    if "batches" not in sys.argv:
        check_loss_of_the_service()
    print("the same", flush=True)
