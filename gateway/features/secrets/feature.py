"""Secrets that commands may use: people see their names and forget them."""

from gateway.feature import Command, Feature
from gateway.features.secrets.commands import secret
from gateway.features.secrets.texts import TEXTS

FEATURE = Feature(name="secrets", commands=(Command(name="secret", run=secret),), texts=TEXTS)
