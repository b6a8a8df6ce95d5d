"""A gate for servers that give a request a thread or a process: it waits by sleeping."""

from __future__ import annotations

import time

from dthrottle._dthrottle import Decision
from dthrottle.gate import Gate, Refusal, Request, Verdict

__all__ = ["BlockingGate"]


class BlockingGate(Gate[Request]):
    """Decides about requests, and holds those that must wait."""

    def judge(self, request: Request, scope: str = "") -> Verdict | None:
        """Decide about a request; None: it passes, and nothing is to be said about it."""
        # Calls are what Python is slow at: none that most requests do not need.
        if not self.takes_all and not self.concerns(request):
            return None
        cost = self.settings.cost
        if type(cost) is not int:
            cost = self.cost(request)
        verdict = self.ask(request, self.tag(request), cost, scope)
        if verdict is not None and verdict.decision.rule is not None:
            self.tell(request, verdict)
        return verdict

    def judged(self, request: Request, decision: Decision) -> Verdict:
        """Say what becomes of a request about which ``quick`` was asked."""
        verdict = self.verdict(decision, self.tag(request), self.cost(request))
        self.tell(request, verdict)
        return verdict

    def hold(self, verdict: Verdict) -> None:
        """Wait for the turn of a request."""
        if verdict.wait:
            with self.held(verdict):
                time.sleep(verdict.wait)

    def refuse(self, request: Request, verdict: Verdict) -> Refusal:
        """Write the response to a request that is refused."""
        with self.slowed(request) as delay:
            if delay:
                time.sleep(delay)
        return self.refusal(verdict, self.body(request, verdict))
