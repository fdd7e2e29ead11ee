"""Surroundings: a message tells when, by whom and where it is written, and where commands run."""

from gateway.feature import Feature
from gateway.features.surroundings.facts import FindZone, make_reader


def make_feature(find_zone: FindZone) -> Feature:
    """`find_zone` gives the time zone of whoever a turn works for."""
    return Feature(name="surroundings", on_begin=(make_reader(find_zone),))
