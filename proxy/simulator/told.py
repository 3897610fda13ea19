"""What the gateway says without asking an endpoint: OPTIONS, the list of models, the account's usage."""

from collections.abc import Mapping
from typing import Final

from proxy.simulator.limits import WORKSPACE
from proxy.simulator.models import PROTOCOLS

HOUR_MS: Final = 3_600_000.0
ANY_ORIGIN: Final = ("access-control-allow-origin", "*")
CORS: Final = (
    ANY_ORIGIN,
    ("access-control-allow-methods", "GET, POST, OPTIONS"),
    (
        "access-control-allow-headers",
        "Content-Type, Authorization, x-api-key, x-goog-api-key, anthropic-version",
    ),
)


def models(provider: str, created: int) -> dict[str, object]:
    """The public list."""
    names = PROTOCOLS[provider]
    data = [{"id": name, "object": "model", "created": created, "owned_by": "opencode"} for name in names]
    return {"object": "list", "data": data}


def usage(left_ms: Mapping[str, float], now_ms: float) -> dict[str, object]:
    """The three windows of a Go account; ``left_ms`` says how long each reached limit holds."""
    windows = {}
    for name, limit in (("rolling", "5 hour"), ("weekly", "weekly"), ("monthly", "monthly")):
        left = left_ms.get(limit)
        windows[name] = {
            "status": "rate-limited" if left else "ok",
            "percent": 100 if left else 37,
            "resetsAt": int(now_ms + (left or HOUR_MS)),
        }
    return {"workspaceID": WORKSPACE, "userID": "usr_01SIMULATED", "usage": windows}
