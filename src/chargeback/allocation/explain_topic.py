"""The explanation of one topic's part of a line: the attribution of the line, with every intermediate result.

Topics take the place of identities, as in :mod:`~chargeback.allocation.topics`; so the explanation of a line among
identities explains it among topics, in other words.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Final

import pyarrow as pa

from chargeback.allocation.explain import ExplainedPortion, TriedMethod, UsageSplit, explain_line
from chargeback.allocation.methods import EVEN_ACTIVE, MethodKind
from chargeback.allocation.policies import Policy
from chargeback.allocation.topics import MARK, day_of_topics, topic_policy
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.topics import UNATTRIBUTED, TopicPlan
from chargeback.model.usage import USAGE

#: Why a day was attributed to no topic, in the place of the reasons of its methods.
FAILED: Final = "the metrics of the topics could not be fetched"
SKIPPED: Final = "lines without measurements of topics are left out, as `missing_metrics_behavior: skip` says"


def explain_topic(
    day: date,
    line: pa.Table,
    evidence: pa.Table | None,
    plan: TopicPlan,
    topic: str,
    cluster_name: str | None = None,
) -> ExplainedPortion:
    """Return how a line (one row of schema BILLING) was attributed to topics, as it concerns one of them.

    Reasons call the cluster of the line by its ``cluster_name``, or by its id.

    ``evidence`` has the measurements of topics, see :meth:`TopicAttributor.attribute`; None for a day whose metrics
    could not be fetched, so that every line was attributed to UNATTRIBUTED. The participants are topics.

    Raises:
        KeyError: the plan does not attribute lines of this type.
    """
    product_type, line_id = line["product_type"][0].as_py(), line["line_id"][0].as_py()
    method = plan.method_of(product_type)
    if method is None:
        raise KeyError(product_type)
    policy: Policy = topic_policy(method, plan)
    marked = day_of_topics(day, line, USAGE.empty_table() if evidence is None else evidence, plan)
    identity = UNALLOCATED if topic == UNATTRIBUTED else f"{MARK}{topic}"
    found = explain_line(marked, {product_type: policy}, line_id, identity, 1, cluster_name)
    applied = found.applied
    if applied is None or found.usage_split is None:
        return found
    cluster = cluster_name or line["resource_id"][0].as_py()
    methods = tuple(_told(each, cluster, is_failed=evidence is None) for each in found.methods)
    if evidence is not None and applied.method.kind is MethodKind.UNALLOCATED and not plan.spreads_missing:
        return replace(found, methods=methods, usage_split=None, arithmetic=None, why_nothing=SKIPPED)
    why_nothing = found.why_nothing
    if found.arithmetic is None:
        why_nothing = _why_not_among(topic, applied, plan)
    return replace(found, methods=methods, usage_split=_of_topics(found.usage_split), why_nothing=why_nothing)


def _told(tried: TriedMethod, cluster: str, *, is_failed: bool) -> TriedMethod:
    """Return a method whose reason speaks of topics."""
    if tried.why_not is None or tried.why_not.startswith("not needed"):
        return tried
    if is_failed:
        return replace(tried, why_not=FAILED)
    if tried.method == EVEN_ACTIVE:
        return replace(tried, why_not=f"no topic of {cluster} is known on this day")
    return tried


def _why_not_among(topic: str, applied: TriedMethod, plan: TopicPlan) -> str:
    """Return why a topic does not share a line."""
    if topic == UNATTRIBUTED:
        return f"there were topics to attribute the line to, so nothing is left for {UNATTRIBUTED}"
    pattern = next((each for each in plan.exclude_patterns if fnmatchcase(topic, each)), None)
    if pattern is not None:
        return f"topics of the pattern {pattern} are excluded"
    if applied.method.kind is MethodKind.UNALLOCATED:
        return f"the line could be attributed to no topic, so it is {UNATTRIBUTED}"
    if applied.method.kind is MethodKind.USAGE:
        return f"no {applied.method.measured} of it were measured on this day"
    return "it is not known to have existed on this day"


def _of_topics(usage_split: UsageSplit) -> UsageSplit:
    """Return what decided the line, with the names of topics."""
    named = tuple(
        replace(each, identity_id=UNATTRIBUTED if each.identity_id == UNALLOCATED else each.identity_id[len(MARK) :])
        for each in usage_split.participants
    )
    return replace(usage_split, participants=named)
