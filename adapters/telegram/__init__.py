"""Telegram's Bot API, through python-telegram-bot."""

import sys

# python-telegram-bot imports httpx, and that its own command line, which takes 5 MB where rich is
# installed for something else
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # means: there is none
