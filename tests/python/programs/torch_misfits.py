# SPDX-License-Identifier: BSD-3-Clause
"""Trainings that executors cannot work for, or not as they are: what comes is right all the same, or says what to do.

The argument: which of them."""

import os
import signal
import sys
import types
import warnings

import torch

sys.path.insert(0, os.path.dirname(__file__))
import offpath
import torch_pictures
from offpath.api.failures import ArgumentError
from offpath.torch import DataLoader, SampleError, Seeded, Validation
from offpath.torch.batches import Recipe
from offpath.torch.weak import WeakWorker
from torch.utils.data import default_collate


def equal(left, right):
    assert len(left) == len(right)
    for one, other in zip(left, right):
        assert all(torch.equal(*pair) for pair in zip(one, other))


def said(work):
    """What it returns, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = work()
    return found, [str(one.message) for one in caught if "offpath" in str(one.message)]


def refused(work, *words):
    try:
        work()
    except (ArgumentError, SampleError, RuntimeError) as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(f"no word of {words}")


def both(dataset=None):
    """Two epochs with a validation each."""
    loader = DataLoader(dataset or torch_pictures.Pictures(20), 8, seed=5)
    validation = Validation(torch_pictures.model(), torch_pictures.evaluate, torch_pictures.Pictures(5))
    made = []
    for _ in range(2):
        made += list(loader)
        validation.begin()
    return made, validation.finish()


def at_home(*words):
    """One warning with these words, and the same as in place."""
    (made, results), warned = said(both)
    assert len(warned) == 1 and all(word in warned[0] for word in words), warned
    assert "This process" in warned[0] and "\n" not in warned[0], warned
    os.environ["OFFPATH_TORCH_ON"] = "host"
    (wanted, in_place), warned = said(both)
    assert results == in_place and not warned
    equal(made, wanted)


class OfMain(torch_pictures.Pictures):
    pass


def check_pickles():
    """What executors cannot import goes by cloudpickle, where it is."""
    lambdas = torch_pictures.WithFunction(20, lambda picture: picture * 2)
    for dataset in (OfMain(20), lambdas):
        known, sys.modules["cloudpickle"] = sys.modules.get("cloudpickle"), None
        refused(lambda given=dataset: list(DataLoader(given, 8)), "cannot be pickled", "top of a module", "cloudpickle")
        del sys.modules["cloudpickle"]
        if known:
            sys.modules["cloudpickle"] = known
        try:
            import cloudpickle  # noqa: F401
        except ImportError:
            continue
        made, warned = said(lambda given=dataset: list(DataLoader(given, 8)))
        assert not warned
        equal(made, list(DataLoader(dataset, 8, on="host")))
    locked = torch_pictures.Pictures(20)
    locked.lock = __import__("threading").Lock()
    refused(lambda: list(DataLoader(locked, 8)), "cannot be pickled", "lock")


def check_what_is_not_there():
    """A module that only this process has; samples that depend on where they are made."""
    module = types.ModuleType("only_here")
    exec("import torch_pictures\nclass Pictures(torch_pictures.Pictures): pass", vars(module))
    sys.modules["only_here"] = module
    for dataset, words in ((module.Pictures(20), "only_here"), (torch_pictures.OfProcess(20), "other batches")):
        made, warned = said(lambda given=dataset: list(DataLoader(given, 8, seed=5)))
        assert len(warned) == 1 and words in warned[0] and "This process makes them." in warned[0], warned
        equal(made, list(DataLoader(dataset, 8, seed=5, on="host")))


def check_lengths():
    """Those that do not go together are torch's error; longer ones than the first batch find room."""
    refused(lambda: list(DataLoader(torch_pictures.Lengths(20), 4)), "equal size")
    wanted = list(DataLoader(torch_pictures.Lengths(300), batch_size=None, on="host"))
    equal(list(DataLoader(torch_pictures.Lengths(300), batch_size=None)), wanted)
    assert isinstance(DataLoader(torch_pictures.Lengths(20), 4).dataset, torch_pictures.Lengths)


def check_a_weak_worker():
    """A share of the batch there: gradients of all of it."""
    model, recipe = torch_pictures.model(), Recipe(Seeded(torch_pictures.Pictures(20)), default_collate)
    torch_pictures.loss(model, recipe.make(list(range(12)), 3)).backward()
    wanted = [parameter.grad for parameter in model.parameters()]
    model.zero_grad(set_to_none=True)
    worker = WeakWorker(model, recipe, torch_pictures.loss)
    for _ in range(2):
        worker.begin(list(range(8, 12)), 3)
        model.zero_grad()
        torch_pictures.loss(model, recipe.make(list(range(8)), 3)).backward()
        worker.join(8)
        for parameter, other in zip(model.parameters(), wanted):
            assert torch.allclose(parameter.grad, other, atol=1e-6), (parameter.grad, other)
    alone = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    torch_pictures.loss(model, recipe.make(list(range(8)), 3)).backward()
    assert not any(torch.allclose(*pair, atol=1e-6) for pair in zip(alone, (p.grad for p in model.parameters())))


def check_stopped_executors():
    """In mid-epoch, with a validation under way: others begin anew what they had begun."""
    validation = Validation(torch_pictures.model(), torch_pictures.evaluate, torch_pictures.Pictures(5))
    wanted, found = list(DataLoader(torch_pictures.Pictures(60), 8, seed=5, on="host")), []

    def epoch():
        for batch in DataLoader(torch_pictures.Pictures(60), 8, seed=5, prefetch=2):
            found.append(batch)
            if len(found) == 3:
                executor = offpath.task(os.getppid).wait()
                validation.begin()
                os.kill(executor, signal.SIGSTOP)
        return validation.finish()

    results, warned = said(epoch)
    assert not warned and len(results) == 1, warned
    equal(found, wanted)


def check_a_lost_service():
    """Before the first batch."""
    known = offpath.task(os.getpid)  # of the session that is there already
    known.wait()
    offpath.task(torch_pictures.end_the_service)
    while known._session.alive:
        pass
    import offpath.torch.executors as executors

    executors._current = None  # as if nobody had asked before
    at_home("lost")


def check_a_dpu_that_goes(*words):
    """In mid-epoch: whoever started this cuts it off when it is told to."""
    wanted, found = list(DataLoader(torch_pictures.Pictures(60), 8, seed=5, on="host")), []

    def epoch():
        for batch in DataLoader(torch_pictures.Pictures(60), 8, seed=5, prefetch=2):
            found.append(batch)
            if len(found) == 3:
                print("now", flush=True)
                sys.stdin.readline()

    _, warned = said(epoch)
    assert len(warned) == 1 and all(word in warned[0] for word in words), warned
    equal(found, wanted)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "here":
        check_pickles()
        check_what_is_not_there()
        check_lengths()
        check_a_weak_worker()
        check_stopped_executors()
        check_a_lost_service()
    elif sys.argv[1] == "goes":
        check_a_dpu_that_goes(*sys.argv[2:])
    else:
        at_home(*sys.argv[2:])
    print("right", flush=True)
