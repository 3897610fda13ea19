"""``server-timing`` in every spelling that a reader must bear, and the fields around it."""

from email.utils import formatdate
from typing import Final

from proxy.simulator.draw import Draw
from proxy.simulator.world import Plan

USUAL: Final = ("plain", "cloudflare", "two-lines", "desc", "reordered", "decimals")
VARIANTS: Final = (*USUAL, "quoted", "absent")

Named = list[tuple[str, str]]


def server_timing(plan: Plan, variant: str) -> Named:
    """The field lines; ``total`` is at least ``gateway`` and ``upstream`` together."""
    gateway, upstream, total = (f"{ms:.0f}" for ms in (plan.gateway_ms, plan.upstream_ms, plan.total_ms))
    plain = f"gateway;dur={gateway}, upstream;dur={upstream}, total;dur={total}"
    lines = {
        "plain": [plain],
        "absent": [],
        "cloudflare": [f"cfEdge;dur=4, cfOrigin;dur={total}, {plain}"],
        "two-lines": [f"gateway;dur={gateway}", f"upstream;dur={upstream}, total;dur={total}"],
        "desc": [f'gateway;desc="";dur={gateway}, upstream;dur={upstream};desc="model", total;dur={total}'],
        "quoted": [f'gateway;dur={gateway}, upstream;desc="a, b;dur=1";dur={upstream}, total;dur={total}'],
        "reordered": [f"total;dur={total},upstream;dur={upstream},gateway;dur={gateway}"],
        "decimals": [f"gateway;dur={gateway}.25, upstream;dur={upstream}.125, total;dur={int(total) + 1}.5"],
    }[variant]
    return [("server-timing", line) for line in lines]


def usual(draw: Draw) -> str:
    """The spelling of one reply: mostly the plain one."""
    return "plain" if draw.fraction("timing") < 0.6 else draw.one_of("which timing", USUAL)


def cloudflare(ray: Draw, wall_ms: int) -> Named:
    """What the edge puts on every answer."""
    return [
        ("date", formatdate(wall_ms / 1000, usegmt=True)),
        ("server", "cloudflare"),
        ("cf-ray", f"{ray.hex('ray', 16)}-ORD"),
        ("cf-cache-status", "DYNAMIC"),
    ]


def service(log_id: str) -> Named:
    """What the inference service puts on every answer, errors too."""
    return [("x-opencode-log-id", log_id), ("cf-placement", "remote-ORD")]


def served_by(plan: Plan, asked_model: str) -> Named:
    """Who served it; on success only."""
    if plan.endpoint is None:
        return []
    return [
        ("x-opencode-endpoint-id", plan.endpoint.name),
        ("x-opencode-upstream-model-id", f"{plan.endpoint.name}/{asked_model}"),
        ("x-zen-model", asked_model),
    ]
