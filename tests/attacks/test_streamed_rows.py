"""Rows of a stream are shown as they end, whatever letters known words begin with."""

import string
import time

from agent_core.guardrails.redaction import Redactions, StreamRedactor
from agent_core.guardrails.secret_spellings import spell_secret
from tests.sampling import dice, examples

ROWS = 200


def test_rows_wait_for_no_word_that_cannot_begin_in_them() -> None:
    """Each row ends in the first letters of a word that its next row does not continue."""
    for n in range(examples(16)):
        chance = dice("rows", n)
        value = "".join(chance.choices(string.ascii_letters + string.digits, k=20))
        forms = list(spell_secret(value))
        words = Redactions(dict.fromkeys(forms, "⟦X⟧")).with_shapes()
        rows = []
        for at in range(ROWS):
            begun = chance.choice(forms)[: chance.randrange(1, 4)]
            rows.append(f"{chance.choice(('a', 'row', ''))}{at},{begun}\n")
        shown: list[str] = []
        stream, most, given = StreamRedactor(words, shown.append), 0, 0
        began = time.process_time()
        for row in rows:
            stream.add(row)
            given += len(row)
            most = max(most, given - sum(map(len, shown)))
        assert time.process_time() - began < 1, "a fifth of it by the row"
        stream.end()
        assert "".join(shown) == words.hide("".join(rows))
        assert most < 100, "the end of a row, and the run that it is in"


def test_a_word_across_rows_is_hidden_as_in_the_whole() -> None:
    """Cut by the line, with other words' beginnings before, between and behind."""
    for n in range(examples(60)):
        chance = dice("across", n)
        value = "".join(chance.choices("abc123", k=chance.randrange(16, 24)))
        other = value[chance.randrange(8) :] + "".join(chance.choices("abc123", k=8))
        forms = {
            form: f"⟦{at}⟧" for at, one in enumerate((value, other)) for form in spell_secret(one)
        }
        words = Redactions(forms).with_shapes()
        letters = "".join(
            chance.choice((value, other, value[: chance.randrange(12)], "a,", "x "))
            for _ in range(12)
        )
        width = chance.randrange(3, 30)
        text = "\n".join(letters[at : at + width] for at in range(0, len(letters), width))
        for step in (1, chance.randrange(2, 9)):
            shown: list[str] = []
            stream = StreamRedactor(words, shown.append)
            for at in range(0, len(text), step):
                stream.add(text[at : at + step])
            stream.end()
            assert "".join(shown) == words.hide(text), (value, other, text)
