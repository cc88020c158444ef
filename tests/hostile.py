"""An executor that reorders, repeats, drops and kills."""

import pickle
import random
import time
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import partial
from threading import Thread
from typing import Any


class Hostile(Executor):
    """Calls functions in any order, twice, or not at all; loses a share `lost` of chunks."""

    chunk_s = 0.05

    def __init__(self, seed: int, lost: float = 0.0, n_chunks: int = 5) -> None:
        self.n_chunks, self.lost, self.done = n_chunks, lost, 0
        self.chance = random.Random(seed)
        self.waiting: list[tuple[Future[Any], Any]] = []
        Thread(target=self.work, daemon=True).start()

    def submit(self, function: Any, /, *given: Any) -> Future[Any]:
        """Keep a call for later, or refuse it."""
        if self.chance.random() < self.lost / 4:
            self.done += 1
            raise BrokenExecutor("refused")
        future: Future[Any] = Future()
        self.waiting.append((future, partial(function, *pickle.loads(pickle.dumps(given)))))
        return future

    def work(self) -> None:
        """Deal with calls in any order."""
        while True:
            time.sleep(0.002)
            if not self.waiting:
                continue
            future, call = self.waiting.pop(self.chance.randrange(len(self.waiting)))
            self.done += 1
            fate = self.chance.random()
            if fate < self.lost / 3:
                future.cancel()
            elif not future.set_running_or_notify_cancel():
                continue
            elif fate < 2 * self.lost / 3:
                call()
                future.set_exception(BrokenExecutor("killed"))
            elif fate < self.lost:
                future.set_result({})
            else:
                call()
                future.set_result(pickle.loads(pickle.dumps(call())))
