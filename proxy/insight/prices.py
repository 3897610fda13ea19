"""List prices of OpenCode's gateway, in USD per million tokens. Only what was published, as of ``AS_OF``.

From the model lists that pi's provider package 1.6.0 carries. A row: model, input, output, cache read, cache write
(None: as input). A model's second row with a number of input tokens holds above that.
"""

AS_OF = "2026-11-20"

Row = tuple[str, int, float, float, float | None, float | None]

GO: tuple[Row, ...] = (
    ("glm-5.3", 0, 1.40, 4.40, 0.26, None),
    ("glm-5.3-flash", 0, 0.15, 0.50, 0.03, None),
    ("kimi-k3", 0, 3.00, 15.00, 0.30, 3.00),
    ("kimi-k3.1-pro", 0, 2.00, 10.00, 0.20, 2.00),
    ("kimi-k2.7-code", 0, 0.95, 4.00, 0.19, None),
    ("deepseek-v4.1-flash", 0, 0.15, 0.60, 0.003, None),
    ("deepseek-v4-pro", 0, 0.66, 1.98, 0.022, None),
    ("mimo-v2.5", 0, 0.14, 0.28, 0.0028, None),
    ("mimo-v2.6-flash", 0, 0.14, 0.28, 0.0028, None),
    ("mimo-v2.5-pro", 0, 0.435, 0.87, 0.003625, None),
    ("mimo-v2.6-pro", 0, 0.435, 0.87, 0.003625, None),
    ("longcat-2.0", 0, 0.30, 1.20, 0.006, None),
    ("hy3", 0, 0.14, 0.58, 0.035, None),
    ("hy4", 0, 0.834, 2.501, 0.042, None),
    ("hy4-preview", 0, 0.834, 2.501, 0.042, None),
    ("minimax-m3.1-flash", 0, 0.15, 0.60, 0.015, None),
    ("step-5-preview", 0, 1.00, 2.70, 0.10, None),
    ("beam-free", 0, 0.0, 0.0, 0.0, None),
    ("hy4-flash-free", 0, 0.0, 0.0, 0.0, None),
    ("iceman-contributor-free", 0, 0.0, 0.0, 0.0, None),
    ("longcat-2.5-free", 0, 0.0, 0.0, 0.0, None),
    ("minimax-m3", 0, 0.30, 1.20, 0.06, None),
    ("minimax-m3", 512_000, 0.60, 2.40, 0.12, None),
    ("qwen3.8-max", 0, 2.00, 6.00, 0.25, 2.50),
    ("qwen3.8-flash", 0, 0.15, 0.47, 0.016, 0.20),
    ("qwen3.7-plus", 0, 0.40, 1.60, 0.04, 0.50),
    ("qwen3.7-plus", 256_000, 1.20, 4.80, 0.12, None),
    ("qwen4-max", 0, 1.50, 4.50, 0.075, 1.875),
    ("claude-haiku-5-5", 0, 0.10, 0.50, 0.01, 0.125),
    ("claude-haiku-5-5", 100_000, 0.50, 2.50, 0.05, None),
    ("gemini-4-argon", 0, 2.00, 10.00, 0.10, None),
    ("gpt-6-luna", 0, 0.10, 0.50, 0.01, 0.125),
    ("gpt-6-luna", 272_000, 0.20, 0.75, 0.02, None),
    ("gpt-5.6-luna", 0, 0.20, 1.20, 0.02, 0.25),
    ("gpt-5.6-luna", 272_000, 0.40, 1.80, 0.04, None),
    ("grok-4.7", 0, 2.00, 6.00, 0.50, None),
    ("grok-4.7", 200_000, 4.00, 12.00, 1.00, None),
    ("muse-spark-1.2-contributor", 0, 0.10, 0.20, 0.002, None),
    ("muse-spark-1.3-contributor", 0, 0.10, 0.20, 0.002, None),
)

ZEN: tuple[Row, ...] = (
    ("glm-5.3", 0, 1.40, 4.40, 0.26, None),
    ("glm-5.3-flash", 0, 0.15, 0.50, 0.03, None),
    ("kimi-k3", 0, 3.00, 15.00, 0.30, None),
    ("kimi-k2.7-code", 0, 0.95, 4.00, 0.19, None),
    ("deepseek-v4.1-flash", 0, 0.30, 1.20, 0.006, None),
    ("deepseek-v4-pro", 0, 1.74, 3.48, 0.145, None),
    ("minimax-m3", 0, 0.30, 1.20, 0.06, None),
    ("qwen3.8-max", 0, 2.00, 6.00, 0.25, None),
    ("big-pickle", 0, 0.0, 0.0, 0.0, None),
    ("claude-opus-5-5", 0, 4.00, 20.00, 0.20, None),
    ("claude-sonnet-5-5", 0, 2.00, 10.00, 0.10, None),
    ("claude-haiku-5-5", 0, 0.10, 0.50, 0.01, None),
    ("claude-fable-5-2", 0, 8.00, 40.00, 0.20, None),
    ("qwen3.6-plus", 0, 0.50, 3.00, 0.05, None),
    ("gpt-6.2-astra", 0, 8.00, 40.00, 0.40, None),
    ("gpt-6.2-sol", 0, 2.00, 10.00, 0.10, None),
    ("gpt-6-luna", 0, 0.10, 0.50, 0.01, None),
    ("gpt-5.3-codex", 0, 1.75, 14.00, 0.175, None),
    ("grok-4.7", 0, 2.00, 6.00, 0.50, None),
    ("gemini-4-argon", 0, 2.00, 10.00, 0.10, None),
    ("gemini-3.8-flash", 0, 0.75, 3.75, 0.075, None),
)

BUILT_IN: dict[str, tuple[Row, ...]] = {"opencode-go": GO, "opencode": ZEN}

# On the Go plan DeepSeek's models cost twice as much in these hours (UTC) from Monday to Friday.
PEAK_PREFIX = "deepseek-"
PEAK_HOURS = frozenset({1, 2, 3, 6, 7, 8, 9})
PEAK_FACTOR = 2.0
