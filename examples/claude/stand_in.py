"""Plays Claude for ``offline.py``: as the app it says what ``stand_in.yaml`` has; as a judge it looks for words.

Equal requests get equal answers, so an offline run shows what the plugin does and says nothing about any model.
"""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from messages_server import Play, Request, answer, error, tool_use

SCENES = {scene["message"]: scene for scene in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))}
SNAPSHOTS = {"claude-haiku-4-5": "claude-haiku-4-5-20251001"}
UNKNOWN = "I am only a stand-in, and know no messages but those of the example."
CHARACTERS_OF_A_TOKEN = 4
IDLE_WORDS = {"says", "that", "does", "asks", "names", "which", "with", "from", "about", "customer", "reply"}


class StandIn:
    """Answers one request after the other; it remembers only where it was busy."""

    def __init__(self) -> None:
        self._busy = {message for message, scene in SCENES.items() if scene.get("busy")}

    def play(self, request: Request) -> Play:
        """Return the answer to a request of the app, or of a judge, whose verdicts have a schema."""
        if "output_config" not in request.body:
            return self._play_app(request)
        shape = request.body["output_config"]["format"]["schema"]["properties"]
        verdict = preference(request.prompt) if "verdict" in shape else verdicts(request.prompt)
        return said(request, json.dumps(verdict))

    def _play_app(self, request: Request) -> Play:
        first, *later = request.body["messages"]
        scene = SCENES.get(first["content"], {"says": UNKNOWN})
        calls = [call for each in scene.get("calls", ()) for call in each.items()]
        if calls and not later:
            uses = [tool_use(name, given, f"toolu_{n}") for n, (name, given) in enumerate(calls, 1)]
            return said(request, [{"type": "text", "text": "Let me look."}, *uses], stop_reason="tool_use")
        if first["content"] in self._busy:
            self._busy.remove(first["content"])
            return error(529, "overloaded_error", "Overloaded")
        asked_for = (text for words, text in scene.get("rules", {}).items() if words in request.system)
        return said(request, next(asked_for, scene["says"]))


def said(request: Request, content: str | list[dict[str, Any]], **fields: Any) -> Play:
    """Return an answer by a dated snapshot of the model that was asked for."""
    model = request.body["model"]
    return answer(content, model=SNAPSHOTS.get(model, model), usage=usage(request.body, content), **fields)


def usage(body: dict[str, Any], content: Any) -> dict[str, Any]:
    """Return tokens by a rule of thumb; where caching is asked for, a call reads what the call before it wrote."""
    fixed = tokens([body.get("system", ""), body.get("tools", [])])
    before, rest = body["messages"][:-2], body["messages"][-2:]
    if "cache_control" not in body:
        return {"input_tokens": fixed + tokens(body["messages"]), "output_tokens": tokens(content)}
    read, written = (fixed + tokens(before), tokens(rest)) if before else (0, fixed + tokens(rest))
    return {
        "input_tokens": 3,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": tokens(content),
    }


def tokens(content: Any) -> int:
    """Return about how many tokens a content has."""
    return 1 + len(content if isinstance(content, str) else json.dumps(content)) // CHARACTERS_OF_A_TOKEN


def verdicts(prompt: str) -> dict[str, Any]:
    """Return a verdict on each claim: it holds if half of its telling words are in the reply, unless it says "not"."""
    reply = telling_words(between_marks(prompt, "answer"))
    found = {}
    for name, claim in re.findall(r"^(claim_\d+): (.*)$", prompt, re.MULTILINE):
        words = telling_words(claim)
        missing = [word for stem, word in words.items() if stem not in reply]
        reason = f"the reply lacks: {', '.join(missing)}" if missing else "the reply has all of its words"
        holds = (2 * len(missing) <= len(words)) is not claim.startswith("does not ")
        found[name] = {"reason": reason, "holds": holds}
    return found


def telling_words(text: str) -> dict[str, str]:
    """Return figures and longer words, each by its beginning, which is what is compared."""
    words = re.findall(r"[a-z]{4,}|\d[\d:.]*\d|\d", text.lower())
    return {word[:5]: word for word in words if word not in IDLE_WORDS}


def preference(prompt: str) -> dict[str, str]:
    """Return which of two replies has more figures and more advice in it."""
    a, b = (figures_and_advice(between_marks(prompt, name)) for name in ("answer_a", "answer_b"))
    return {"reason": f"figures and advice: {a} in A, {b} in B", "verdict": "tie" if a == b else "ab"[b > a]}


def figures_and_advice(reply: str) -> int:
    """Return how many figures a reply has, and how often it says "please"."""
    return len(re.findall(r"\d+|please", reply, re.IGNORECASE))


def between_marks(prompt: str, name: str) -> str:
    """Return the text that the marks of that name enclose."""
    return re.search(rf"<{name}-(\w+)>\n(.*)\n</{name}-\1>", prompt, re.DOTALL)[2]
