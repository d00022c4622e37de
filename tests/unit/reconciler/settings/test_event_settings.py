"""Where events go: the settings of the relay."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.settings.environment import SettingsError
from reconciler.settings.events import EventSettings

PASSWORD = "pa55word-of-the-sink"


def test_the_defaults_are_the_documented_ones() -> None:
    settings = EventSettings.load({})

    assert settings.events_sink.get_secret_value() == "log:"
    assert settings.events_source == "/plexsphere"
    assert (settings.events_batch, settings.events_binary) == (512, False)
    assert settings.events_stream is None
    assert settings.events_ca_file is None


@pytest.mark.parametrize(
    "sink",
    [
        "log:",
        "http://127.0.0.1:8080/events",
        f"https://user:{PASSWORD}@events.example/?key=1",
        "nats://nats.example:4222",
        f"tls://{PASSWORD}@nats-0.example:4222,tls://{PASSWORD}@nats-1.example:4222",
    ],
)
def test_a_sink_is_taken_and_not_shown(sink: str) -> None:
    settings = EventSettings.load({"PLEXSPHERE_EVENTS_SINK": sink})

    assert settings.events_sink.get_secret_value() == sink
    assert PASSWORD not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("SINK", "stdout", "log:, an http"),
        ("SINK", "log:/var/log/events", "log:, an http"),
        ("SINK", f"kafka://{PASSWORD}@kafka:9092", "log:, an http"),
        ("SINK", f"https://{PASSWORD}@", "log:, an http"),
        ("SINK", "nats://", "log:, an http"),
        ("SOURCE", "two words", "a URI"),
        ("SOURCE", "/" + "x" * 256, "a URI"),
        ("SOURCE", "/größe", "a URI"),
        ("BATCH", "0", "between 1 and 10000"),
        ("BATCH", "10001", "between 1 and 10000"),
        ("BATCH", "many", "between 1 and 10000"),
        ("HTTP_MODE", "batched", "structured or binary"),
        ("NATS_STREAM", "a.b", "letters, digits"),
        ("NATS_STREAM", "x" * 33, "letters, digits"),
        ("CA_FILE", "/nowhere/ca.crt", "a file that can be read"),
    ],
)
def test_a_wrong_knob_is_one_line_that_names_it_and_the_rule(
    name: str, value: str, rule: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        EventSettings.load({f"PLEXSPHERE_EVENTS_{name}": value})

    [fault] = caught.value.faults
    assert fault.startswith(f"PLEXSPHERE_EVENTS_{name}: ")
    assert rule in fault
    assert PASSWORD not in str(caught.value)


def test_the_others_are_taken(tmp_path: Path) -> None:
    authorities = tmp_path / "ca.crt"
    authorities.touch()

    settings = EventSettings.load(
        {
            "PLEXSPHERE_EVENTS_HTTP_MODE": "binary",
            "PLEXSPHERE_EVENTS_NATS_STREAM": "plexsphere-events",
            "PLEXSPHERE_EVENTS_SOURCE": "https://plexsphere.example/eu",
            "PLEXSPHERE_EVENTS_CA_FILE": str(authorities),
            "PLEXSPHERE_EVENTS_BATCH": "10000",
        }
    )

    assert settings.events_binary
    assert settings.events_stream == "plexsphere-events"
    assert settings.events_source == "https://plexsphere.example/eu"
    assert settings.events_ca_file == authorities
    assert settings.events_batch == 10_000


@pytest.mark.parametrize(
    "field", list(EventSettings.model_fields.values()), ids=lambda item: item.alias
)
def test_the_page_names_every_knob(field: object) -> None:
    page = (Path(__file__).parents[4] / "docs" / "events.md").read_text(encoding="utf-8")

    assert f"| `{getattr(field, 'alias', None)}` |" in page
