"""A gate for servers with an event loop: it waits without blocking, and functions may be coroutines."""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from typing import Any

from dthrottle.gate import Gate, Refusal, Request, Verdict

__all__ = ["AwaitingGate"]


class AwaitingGate(Gate[Request]):
    """Decides about requests, and holds those that must wait."""

    async def judge(self, request: Request, scope: str = "") -> Verdict | None:
        """Decide about a request; None: it passes, and nothing is to be said about it."""
        if not self.concerns(request):
            return None
        tag = await self._settle("tag", self.tag(request))
        verdict = self.ask(request, tag, await self._settle("cost", self.cost(request)), scope)
        if verdict is not None:
            await self._settle("on_refused", self.tell(request, verdict))
        return verdict

    async def hold(self, verdict: Verdict) -> None:
        """Wait for the turn of a request."""
        if verdict.wait:
            with self.held(verdict):
                await asyncio.sleep(verdict.wait)

    async def refuse(self, request: Request, verdict: Verdict) -> Refusal:
        """Write the response to a request that is refused."""
        with self.slowed(request) as delay:
            if delay:
                await asyncio.sleep(delay)
        return self.refusal(verdict, await self._settle("body", self.body(request, verdict)))

    async def _settle(self, option: str, value: Any) -> Any:
        """Await what a function of the application gave, if it is to be awaited."""
        if not isawaitable(value):
            return value
        try:
            return await value
        except Exception:
            self.failed(option)
            return None
