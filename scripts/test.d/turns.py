# SPDX-License-Identifier: Apache-2.0
"""Who may run at the same time: many beside each other, or one alone."""

import threading
from contextlib import contextmanager


class Turns:
    """Lets up to `places` holders run beside each other until they ask to be alone, which they then are one after the other.

    Who waits to be alone takes no place.
    """

    def __init__(self, places):
        self._places = places
        self._change = threading.Condition()
        self._together = 0
        self._alone = None

    @contextmanager
    def beside_others(self):
        """Waits until there is a place, and nobody is alone; a Turn for the caller, which may become alone and ends with the context."""
        turn = Turn(self)
        with self._change:
            self._change.wait_for(lambda: self._alone is None and self._together < self._places)
            self._together += 1
        try:
            yield turn
        finally:
            with self._change:
                if self._alone is turn:
                    self._alone = None
                else:
                    self._together -= 1
                self._change.notify_all()

    def become_alone(self, turn):
        """Waits until all others have ended, or ask to be alone too and have not got their turn."""
        with self._change:
            self._together -= 1
            self._change.notify_all()
            self._change.wait_for(lambda: self._together == 0 and self._alone is None)
            self._alone = turn


class Turn:
    """One holder's place among the others."""

    def __init__(self, turns):
        self._turns = turns

    def wait_until_alone(self):
        self._turns.become_alone(self)
