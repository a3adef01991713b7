"""How the costs of a month become a journal: accounts, and the templates of what finance's own system wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from chargeback.disk import explain_denial, locate
from chargeback.settings import Settings

#: The largest file of a template, in bytes.
MAX_TEMPLATE_BYTES: Final = 256 * 2**10
#: The last part of a template's file name, without ``.j2``, says what it writes.
MEDIA_TYPES: Final = {
    "csv": "text/csv",
    "json": "application/json",
    "xml": "application/xml",
    "txt": "text/plain",
}
_SUFFIX: Final = ".j2"

_Account = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f]*$")]
_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")]


class JournalSettings(Settings):
    """The journal of a month: by what it is made, its accounts, and templates (name → file)."""

    by: Annotated[
        str, StringConstraints(pattern=r"^(identity_id|(tag|category):[A-Za-z0-9][A-Za-z0-9_.:-]{0,63})$")
    ] = "category:cost_center"
    clearing_account: _Account = "CLEARING"
    expense_account: _Account = "EXPENSE"
    suspense_account: _Account | None = None
    adjustment_account: _Account | None = None
    product_accounts: dict[Annotated[str, Field(min_length=1, max_length=255)], _Account] = Field(default_factory=dict)
    account_id: Annotated[str, StringConstraints(min_length=1, max_length=64)] = "account"
    templates: dict[_Name, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JournalTemplate:
    """A template: its name, what it writes (one of :data:`MEDIA_TYPES`), and its source."""

    name: str
    form: str
    source: str


@dataclass(frozen=True, slots=True)
class JournalProfile:
    """How the journals of a tenant are made. ``account_id`` is which of finance's own ids of a value is its account.
    What is assigned to no value has a ``suspense_account``, and what adjustments add or take an ``adjustment_account``,
    if there are such; products may have accounts of their own."""

    by: str = "category:cost_center"
    clearing_account: str = "CLEARING"
    expense_account: str = "EXPENSE"
    account_id: str = "account"
    templates: Mapping[str, JournalTemplate] = field(default_factory=dict)
    suspense_account: str | None = None
    adjustment_account: str | None = None
    product_accounts: Mapping[str, str] = field(default_factory=dict)


class TemplateFileError(ValueError):
    """The file of a template cannot be used; ``name`` is that of the template, and the message says why."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def read_journal_profile(settings: JournalSettings, folder: Path) -> JournalProfile:
    """Return how journals are made, with the templates as they are now; relative paths start at ``folder``.

    Raises:
        TemplateFileError: a template cannot be read.
    """
    templates = {name: _template(name, written, folder) for name, written in settings.templates.items()}
    return JournalProfile(
        settings.by,
        settings.clearing_account,
        settings.expense_account,
        settings.account_id,
        templates,
        settings.suspense_account,
        settings.adjustment_account,
        settings.product_accounts,
    )


def _template(name: str, written: str, folder: Path) -> JournalTemplate:
    form = written.removesuffix(_SUFFIX).rpartition(".")[2]
    if form not in MEDIA_TYPES:
        known = ", ".join(f".{each}" for each in MEDIA_TYPES)
        raise TemplateFileError(name, f"should be a file whose name ends with {known}, or with {_SUFFIX} after it")
    try:
        path = locate(written, folder)
    except ValueError as error:
        raise TemplateFileError(name, str(error)) from None
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TEMPLATE_BYTES + 1)
        source = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TemplateFileError(name, "should be a file of UTF-8 text") from None
    except OSError as error:
        why = f"{error.strerror}{explain_denial(path, write=False)}"
        raise TemplateFileError(name, f"should be a file that can be read: {why}") from None
    if len(content) > MAX_TEMPLATE_BYTES:
        raise TemplateFileError(name, f"should be a file of at most {MAX_TEMPLATE_BYTES // 2**10} KiB")
    return JournalTemplate(name, form, source)
