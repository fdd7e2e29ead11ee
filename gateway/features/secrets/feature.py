"""Secrets that commands may use: people see their names and forget them."""

from gateway.feature import Feature, own_command
from gateway.features.secrets.commands import secret

FEATURE = Feature(name="secrets", commands=(own_command("secret", secret),))
