"""A machine's document is the same whether it was rendered before or not."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from function.contract.errors import ContractError
from function.contract.secrets import TokenPlaintext
from function.contract.strategy import CloudProvider, DocumentForm
from function.render.documents import budget, cloudinit, template
from tests.unit.function.render.test_budget import bundle
from tests.unit.function.render.test_cloudinit import ENROLMENT

TOKENS = st.one_of(
    st.from_regex(r"psb_[a-z]{1,4}_[a-z2-7]{26}_node_[a-z2-7]{20,40}", fullmatch=True),
    st.from_regex(r"psb_[A-Za-z0-9_-]{10,130}", fullmatch=True),
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=520),
    st.sampled_from(["yes", "1e3", "psb_" + "0" * 40, "psb_" + "a" * 200, "it's"]),
)


def fresh(provider: CloudProvider, enrolment: cloudinit.DocumentFields) -> str:
    try:
        return budget.fit(provider, cloudinit.body(enrolment))
    except ContractError as error:
        return f"refused: {error}"


def given_out(provider: CloudProvider, enrolment: cloudinit.DocumentFields) -> str:
    try:
        return template.text(provider, enrolment)
    except ContractError as error:
        return f"refused: {error}"


@settings(deadline=None, max_examples=150)
@examples(
    tokens=st.lists(TOKENS, min_size=1, max_size=3),
    provider=st.sampled_from(CloudProvider),
    form=st.sampled_from(DocumentForm),
    handle=st.sampled_from(["pr-1", "psb_" + "0" * 40, "", "a b"]),
    certificates=st.sampled_from([None, bundle(500), bundle(7_000), bundle(30_000)]),
)
def test_it_is_the_document_that_is_rendered_anew(
    tokens: list[str],
    provider: CloudProvider,
    form: DocumentForm,
    handle: str,
    certificates: str | None,
) -> None:
    for token in tokens:
        enrolment = replace(
            ENROLMENT,
            token=TokenPlaintext(token),
            form=form,
            handle=handle,
            ca_bundle=certificates,
        )

        assert given_out(provider, enrolment) == fresh(provider, enrolment)
