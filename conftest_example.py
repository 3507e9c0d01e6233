"""The conftest of your own eval: copy this file to ``evals/conftest.py`` and fill it in.

1. Copy it. A directory whose conftest has these hooks is an eval, and pytest collects its cases.
2. Fill in the three functions that raise ``NotImplementedError``; each docstring ends with an example to start from.
   If you list the cases in ``evals/catalog.yaml`` instead, delete ``pytest_hillclimb_load_cases``.
3. Run ``pytest evals --hillclimb-approve-harness``. The option says that you have read what decides what is run and how
   it is graded: this file and the catalog. Give it again whenever they change, and only then.

Later rounds of the app are ``pytest evals --hillclimb-variant v1``, then ``v2``, and so on.

The run and grade hooks are called from threads and from an event loop of the plugin, many at a time, not from
pytest's main thread. What they share must be safe to share. Fixtures are not passed to them. ``async def`` suits an
async client, plain ``def`` anything else: each plain call gets a thread of its own. An ``async def`` that blocks (with
``time.sleep``, or a synchronous client) holds up all the others.
"""

# Some of these are used only once the functions are filled in.
from pytest_hillclimb import Case, Grade, InfrastructureError, Run, Turn  # noqa: F401


def pytest_hillclimb_load_cases(config):
    """Return the cases, in the order in which they are to run. Called once, before anything is spent.

    :param config: pytest's own config, for instance for ``config.rootpath``
    :return: a list of ``Case`` or of mappings with the same keys. Only ``id`` is required: a text that stays the same
        from round to round, since results are kept and compared by it. ``prompt`` (or ``input``) is what the app gets,
        ``expected`` is for the grader alone, the first of the ``tags`` is the group in reports, ``meta`` is copied to
        the results. Any other field is kept too and is an attribute of the case.

    Example::

        return [
            Case(id="capital-fr", prompt="What is the capital of France?", expected="Paris", tags=["geography"]),
            Case(id="capital-jp", prompt="What is the capital of Japan?", expected="Tokyo", tags=["geography"]),
        ]
    """
    raise NotImplementedError(
        "pytest_hillclimb_load_cases is not filled in: return your cases there, "
        "or delete the hook and list them in a catalog.yaml beside the conftest"
    )


async def pytest_hillclimb_run_case(case, ctx):
    """Run the app on one case. ``def`` instead of ``async def`` works the same way.

    :param case: the case; show the app ``case.prompt`` or ``case.input``, and never ``case.expected``
    :param ctx: ``ctx.variant`` is the round of the app (``baseline``, ``v1``, ...) and ``ctx.model`` the model asked
        for on the command line, or None. ``ctx.rep`` counts repetitions from 0, ``ctx.attempt`` tries from 1.
        ``ctx.seed`` is an int that depends on the case and the repetition alone. ``ctx.workspace`` is a new, empty
        directory for this attempt. ``ctx.remaining()`` gives the seconds that are left. ``ctx.attach(name, data,
        kind=..., alt=...)`` keeps an artifact and returns an ``Attachment`` for a turn. ``ctx.settings`` and
        ``ctx.state`` are the resolved options and the loop state, ``ctx.flow`` is the flow directory: read only.
    :return: a ``Run`` or a mapping with the same keys, all of them optional. ``output`` is what is graded, and in the
        baseline becomes the reference; ``transcript`` is a list of turns; ``model``, ``usage`` and ``stop_reason`` are
        what the provider answered, not what was asked for; ``tool_calls`` and ``web_searches`` are counts. ``status``
        is seldom needed: it is ``truncated`` when ``stop_reason`` says so, else ``ok``.

    Exceptions: rate limits, overload, server and connection errors are retried with growing waits, so turn off the
    retries of your SDK, or they are neither counted nor bounded by the deadline. Any other exception ends the attempt
    without a score. Set ``failure_class``, and ``model`` and ``usage`` if something was billed, as attributes of the
    exception: they go to ``errors.jsonl``. ``InfrastructureError`` says that the harness failed, not the app; it is
    retried once if ``retryable``. ``pytest.skip`` leaves the case open.

    Example::

        import json
        from my_app import AppDown, ask  # the app under test

        try:
            answer = await ask(case.prompt, model=ctx.model, prompt_file=f"prompts/{ctx.variant}.md", cwd=ctx.workspace)
        except AppDown as error:
            raise InfrastructureError("app_down", retryable=True, message=str(error)) from error

        transcript = [Turn(role="user", content=case.prompt)]
        for call in answer.tool_calls:
            transcript.append(Turn(role="tool_call", name=call.name, content=json.dumps(call.arguments, indent=2)))
            transcript.append(Turn(role="tool_result", name=call.name, content=call.result))
        page = ctx.attach("answer.html", answer.html, kind="html", alt="The answer as the customer sees it")
        transcript.append(
            Turn(role="assistant", content=answer.text, thinking=answer.thinking, attachments=[page])
        )
        return Run(
            output=answer.text,
            transcript=transcript,
            model=answer.model,
            usage={"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens},
            stop_reason=answer.stop_reason,
            tool_calls=len(answer.tool_calls),
        )
    """
    raise NotImplementedError("pytest_hillclimb_run_case is not filled in: call your app there and return a Run")


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    """Grade the run. ``async def`` works too, for a judge with an async client.

    :param case: the case, with ``case.expected``
    :param run: the ``Run`` of this case
    :param ref: in ``v1`` and later the frozen output of the baseline as text (JSON text if it was no string), None in
        the baseline itself or when there is no reference
    :param ctx: as in ``pytest_hillclimb_run_case``
    :return: a ``Grade``, a mapping ``{metric: number}``, a bool or a number. Metrics keep their names and meaning from
        round to round, and a comparison with the baseline needs a neutral value in the baseline, such as 0.5. The item
        passes by ``Grade.passed`` if given, else by a bool grade, else by a metric named ``pass`` (1 is passed).

    A grader that raises gives no score: the row goes to ``errors.jsonl`` with the class ``grader_error``, unless the
    exception says otherwise, as ``JudgeFailed`` below does. Transient errors of a judge are retried apart from those
    of the app, on the same run.

    Example::

        from my_app import judge  # a model that reads the answer

        verdict = judge(case.prompt, run.output, case.expected)
        spent = {"input_tokens": verdict.input_tokens, "output_tokens": verdict.output_tokens}
        if verdict.score is None:
            raise JudgeFailed(f"no score in {verdict.text!r}", model=verdict.model, usage=spent)
        return Grade(
            grade={
                "pass": case.expected.lower() in run.output.lower(),
                "tone": verdict.score,
                "same_as_baseline": 0.5 if ref is None else float(run.output == ref),
            },
            explanation={"tone": verdict.text},
            judge_model=verdict.model,
            judge_usage=spent,
        )
    """
    raise NotImplementedError("pytest_hillclimb_grade_case is not filled in: grade run.output there")


def pytest_hillclimb_perf(case, run):
    """Return further numbers for the row of this run, beside latency, tokens and grades; delete it if you need none."""
    return {}


class JudgeFailed(Exception):
    """The judge was paid, but its verdict cannot be used: what it cost stays on the errors row."""

    failure_class = "judge_error"

    def __init__(self, message, *, model, usage):
        super().__init__(message)
        self.judge_model = model
        self.judge_usage = usage
