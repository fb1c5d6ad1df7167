"""The registry of leaked tool-call scaffolding, as data. Pure.

Each entry names a format seen in public reports or in this project's own captures, with its evidence; a test refuses an
entry without evidence and without a fixture. To add a format, add an entry and a case; no code changes. What is *not*
registered, and why, stands in docs/decisions/0010-scaffolding-registry.md. `app.rag.scaffolding` reads it.

Kinds:
    span        a start token, any text, an end token; always stripped, in code and in quotes too
    standalone  a token without a body; with `payload`, a JSON payload after it goes with it
    tag         text that honest prose may hold: stripped only when a payload's shape follows, never inside code
    terminal    an end-of-turn token: stripped at the very end of the stream only
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["span", "standalone", "tag", "terminal"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One format.

    Attributes:
        ends: Tokens that close a span, or a tag's body that is not JSON.
        begins: How the format's own body begins, besides `[`, `{`, `<` and `name(`.
        begins_named: What the format's own body holds right behind a leading name.
        ends_by_begin: (begin, end): a body that begins so has this end instead of `ends`.
        orphans: Closers that go with a span when they stand directly after it.
        echo: Whether the body may be repeated after the end token (LFM2 does).
        closers: What may follow a JSON payload and goes with it.
        payload: Whether a JSON payload after a standalone token goes with it.
    """

    name: str
    kind: Kind
    start: str
    evidence: str
    ends: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    begins_named: tuple[str, ...] = ()
    ends_by_begin: tuple[tuple[str, str], ...] = ()
    orphans: tuple[str, ...] = ()
    echo: bool = False
    closers: tuple[str, ...] = ()
    payload: bool = False


TAG_CLOSERS = (
    "</tool_call>",
    "</function>",
    "</function_call>",
    "</function_calls>",
    "</arg_value>",
    "[/TOOL_CALLS]",
    "<|/tool_call|>",
)
"""Models close a JSON payload with their own closer or with another family's."""


def _span(name: str, start: str, ends: tuple[str, ...], evidence: str, **more: object) -> Entry:
    return Entry(name, "span", start, evidence, ends=ends, **more)  # type: ignore[arg-type]


def _deepseek(bar: str, form: str) -> list[Entry]:
    evidence = "parser: Rapid-MLX#1676 tests"
    return [
        _span(
            f"deepseek_calls{form}",
            f"<{bar}tool▁calls▁begin{bar}>",
            (f"<{bar}tool▁calls▁end{bar}>",),
            evidence,
            orphans=(f"<{bar}tool▁call▁end{bar}>", f"<{bar}tool▁calls▁end{bar}>"),
        ),
        _span(
            f"deepseek_call{form}",
            f"<{bar}tool▁call▁begin{bar}>",
            (f"<{bar}tool▁call▁end{bar}>",),
            evidence,
            begins_named=(f"<{bar}tool▁sep{bar}>",),
            orphans=(f"<{bar}tool▁call▁end{bar}>", f"<{bar}tool▁calls▁end{bar}>"),
        ),
    ]


def _dsml(bars: str, form: str) -> Entry:
    return _span(
        f"deepseek_dsml{form}",
        f"<{bars}DSML{bars}",
        (f"</{bars}DSML{bars}tool_calls>", f"</{bars}DSML{bars}function_calls>"),
        "sgl-project/sglang#35736 and #40236, GenericAgent#804, hermes-agent#46537",
        begins=("tool_calls>", "function_calls>", "invoke "),
        ends_by_begin=(("invoke ", f"</{bars}DSML{bars}invoke>"),),
        orphans=tuple(f"</{bars}DSML{bars}{name}>" for name in ("tool_calls", "function_calls")),
    )


LFM2_END = "<|tool_call_end|>"
KIMI_ORPHANS = (LFM2_END, "<|tool_calls_section_end|>")
GEMMA_ORPHANS = ("<tool_call|>", "<channel|>")
HARMONY_ENDS = ("<|call|>", "<|end|>", "<|channel|>final<|message|>", "<|start|>assistant")
HARMONY_BEGINS = (" to=", "<|constrain|>", "<|message|>")
HARMONY_EVIDENCE = "odysseus#4522, TensorRT-LLM#9256, Rapid-MLX#444 and #480, qvac#2803"

SPANS: tuple[Entry, ...] = (
    _span(
        "lfm2_call",
        "<|tool_call_start|>",
        (LFM2_END,),
        "incident of 2026-09-03; vllm#39243, llama.cpp#23838, lmstudio-bug-tracker#1979, mlx-lm#1246",
        orphans=(LFM2_END,),
        echo=True,
    ),
    _span("cohere_action", "<|START_ACTION|>", ("<|END_ACTION|>",), "parser: ollama cohere.go"),
    _span(
        "kimi_k2_section",
        "<|tool_calls_section_begin|>",
        ("<|tool_calls_section_end|>",),
        "BerriAI/litellm#12679",
        orphans=KIMI_ORPHANS,
    ),
    _span(
        "kimi_k2_call",
        "<|tool_call_begin|>",
        (LFM2_END,),
        "BerriAI/litellm#12679",
        begins=("functions.",),
        begins_named=(":",),
        orphans=KIMI_ORPHANS,
    ),
    _span("kimi_k3_tools", "<|open|>tools<|sep|>", ("<|close|>tools<|sep|>",), "oh-my-pi#8495, getsigit/sigit#92"),
    _span("kimi_k3_think", "<|open|>think<|sep|>", ("<|close|>think<|sep|>",), "oh-my-pi#8495, getsigit/sigit#92"),
    *_deepseek("｜", ""),
    *_deepseek("|", "_ascii"),
    _dsml("｜", ""),
    _dsml("｜｜", "_doubled"),
    _dsml("‖", "_double_bar"),
    _dsml("|", "_ascii"),
    _span("minimax_m2", "<minimax:tool_call>", ("</minimax:tool_call>",), "MiniMax-M2.5#10"),
    _span("harmony_commentary", "<|channel|>commentary", HARMONY_ENDS, HARMONY_EVIDENCE, begins=HARMONY_BEGINS),
    _span("harmony_analysis", "<|channel|>analysis", HARMONY_ENDS, HARMONY_EVIDENCE, begins=HARMONY_BEGINS),
    _span(
        "gemma_call",
        "<|tool_call>",
        ("<tool_call|>",),
        "Rapid-MLX#686 and #447, vllm#39588",
        begins=("call:",),
        orphans=GEMMA_ORPHANS,
    ),
    _span(
        "gemma_thought",
        "<|channel>thought",
        ("<channel|>",),
        "Rapid-MLX#686 and #447, vllm#39588",
        orphans=GEMMA_ORPHANS,
    ),
    _span(
        "functiongemma",
        "<start_function_call>",
        ("<end_function_call>",),
        "parser: FunctionGemma's chat template",
        begins=("call:",),
    ),
    _span("internlm2", "<|action_start|><|plugin|>", ("<|action_end|>",), "parser: InternLM2's tool parser"),
    _span("apertus", "<|tools_prefix|>", ("<|tools_suffix|>",), "parser: Apertus' chat template"),
    _span("seed_oss", "<seed:tool_call>", ("</seed:tool_call>",), "parser: Seed-OSS' tool parser"),
    _span(
        "hunyuan3",
        "<tool_call:opensource>",
        ("<end_of_tool_call:opensource>",),
        "parser: Hunyuan 3's tool parser",
    ),
    _span("muse", "<atem:function_calls>", ("</atem:function_calls>",), "parser: Muse's tool parser"),
)

STANDALONE: tuple[Entry, ...] = (
    Entry("tool_calls_marker", "standalone", "<|tool_calls|>", "the guardrail phase's registry, 2026-09-03"),
    Entry(
        "granite_phi_call",
        "standalone",
        "<|tool_call|>",
        "the guardrail phase's registry, 2026-09-03; vllm#11039 and #11307",
        closers=TAG_CLOSERS,
        payload=True,
    ),
    Entry("harmony_start", "standalone", "<|start|>assistant", HARMONY_EVIDENCE),
    Entry("harmony_final", "standalone", "<|channel|>final<|message|>", HARMONY_EVIDENCE),
    Entry("kimi_k3_open", "standalone", "<|open|>response<|sep|>", "oh-my-pi#8495, getsigit/sigit#92"),
    Entry("kimi_k3_close", "standalone", "<|close|>response<|sep|>", "oh-my-pi#8495, getsigit/sigit#92"),
)

TAGS: tuple[Entry, ...] = (
    Entry(
        "hermes_call",
        "tag",
        "<tool_call>",
        "gpustack/llama-box#61, AquiLLM#193, Rapid-MLX#1508, elizaOS/eliza#8872, ollama#17742",
        ends=("</tool_call>",),
        closers=TAG_CLOSERS,
    ),
    Entry(
        "qwen3_function",
        "tag",
        "<function=",
        "ollama#17742 and #16693, llama.cpp#15012, Rapid-MLX#448, freellmapi#291",
        ends=("</function>", "</tool_call>"),
        closers=(*TAG_CLOSERS, "></function>"),
    ),
    *(
        Entry(name, "tag", start, evidence, ends=(end,), closers=(end, *TAG_CLOSERS))
        for name, start, end, evidence in (
            ("nemotron_mini", "<toolcall>", "</toolcall>", "ollama#6870 and #8287"),
            ("nemotron", "<TOOLCALL>", "</TOOLCALL>", "parser: Dynamo's nemotron_deci"),
        )
    ),
    Entry(
        "granite_function_call",
        "tag",
        "<function_call>",
        "ibm-granite-community/granite-retrieval-agent#33",
        ends=("</function_call>",),
        closers=TAG_CLOSERS,
    ),
    Entry(
        "claude_function_calls",
        "tag",
        "<function_calls>",
        "Cogtrix#116, zeroclaw#7370, unarbos/arbos#278",
        ends=("</function_calls>",),
        closers=TAG_CLOSERS,
    ),
    Entry(
        "mistral_calls",
        "tag",
        "[TOOL_CALLS]",
        "mlx-lm#1374, vllm#16190, Rapid-MLX#579",
        ends=("[/TOOL_CALLS]",),
        closers=TAG_CLOSERS,
    ),
    Entry(
        "text_imitation",
        "tag",
        "[Calling tool: ",
        "Rapid-MLX#1592, openclaw#989",
        ends=(")]",),
        closers=(")]", ")", "]"),
    ),
    Entry(
        "llama3_python_tag",
        "tag",
        "<|python_tag|>",
        "meta-llama/llama-models#266, vllm#11039",
        ends=("<|eom_id|>", "<|eot_id|>"),
        closers=("<|eom_id|>", "<|eot_id|>"),
    ),
)

TERMINAL: tuple[Entry, ...] = tuple(
    Entry(f"end_of_turn_{token.strip('<|>')}", "terminal", token, evidence)
    for token, evidence in (
        ("<|im_end|>", "pocketpal-ai#113, little-coder#42"),
        ("<|eot_id|>", "llama.cpp#6859"),
        ("<|eos|>", "hermes-agent#116486"),
        ("<|endoftext|>", "moltis#720"),
        ("<|eom_id|>", "vllm#11039"),
        ("<|end_of_text|>", "llama.cpp#6859"),
        ("<|return|>", HARMONY_EVIDENCE),
    )
)

REGISTRY: tuple[Entry, ...] = (*SPANS, *STANDALONE, *TAGS, *TERMINAL)
