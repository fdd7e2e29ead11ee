"""Telegram's Bot API, through python-telegram-bot."""

import sys

# python-telegram-bot imports httpx, which imports its command line; that takes 5 MB if rich is
# installed
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # means: there is none
