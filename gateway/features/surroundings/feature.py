"""Surroundings: tells the model when, by whom and where a message was written, and where commands
run."""

from gateway.feature import Feature
from gateway.features.surroundings.facts import FindZone, make_reader


def make_feature(find_zone: FindZone) -> Feature:
    """`find_zone` returns the time zone of the person for whom a turn works."""
    return Feature(name="surroundings", on_begin=(make_reader(find_zone),))
